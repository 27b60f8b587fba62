// Listings with line numbers. One that answers to clicks is a listbox: arrow keys move the chosen line.
const LANGUAGES = {
  c: { words: /^(?:alignas|auto|bool|break|case|char|class|const|constexpr|continue|default|do|double|else|enum|extern|false|float|for|if|inline|int|long|namespace|nullptr|return|short|signed|sizeof|static|static_assert|struct|switch|template|true|typedef|typename|union|unsigned|using|void|volatile|while|__\w+)$/, comment: "//" },
  py: { words: /^(?:and|as|assert|async|await|break|class|continue|def|del|elif|else|except|False|finally|for|from|global|if|import|in|is|lambda|None|nonlocal|not|or|pass|raise|return|True|try|while|with|yield)$/, comment: "#" },
  yaml: { words: /^(?:true|false|null|extends|requires|when|domain|prefer|value|source)$/, comment: "#" },
};
const languageOf = (name) => (/\.(hip|cu|h)(\.jinja)?$/.test(name) ? LANGUAGES.c : /\.yaml$/.test(name) ? LANGUAGES.yaml : LANGUAGES.py);
const TOKEN = /(\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\})|(\/\/.*|\/\*.*?\*\/|#.*)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(\b0[xX][0-9a-fA-F]+\w*|\b\d[\d.]*\w*)|([A-Za-z_]\w*)/g;

function coloured(text, language) {
  const parts = [];
  let end = 0;
  for (const found of text.matchAll(TOKEN)) {
    const [whole, jinja, comment, string, digits, name] = found;
    const real = comment && (comment.startsWith(language.comment) || (language.comment === "//" && comment.startsWith("/*")));
    const kind = jinja ? "j" : real ? "c" : string ? "s" : digits ? "d" : name && language.words.test(name) ? "w" : "";
    if (!kind) continue;
    parts.push(text.slice(end, found.index), h("span", { class: kind }, whole));
    end = found.index + whole.length;
  }
  parts.push(text.slice(end));
  return parts;
}

class Listing {
  constructor(label, choose) {
    this.choose = choose;
    this.element = h("div", { class: "listing", tabindex: "0", "aria-label": label, role: choose ? "listbox" : "region" });
    if (choose) {
      this.element.addEventListener("click", (event) => {
        const line = event.target.closest(".line");
        if (line) this.take(Number(line.dataset.line));
      });
      this.element.addEventListener("keydown", (event) => {
        const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[event.key];
        if (!step) return;
        event.preventDefault();
        event.stopPropagation();
        this.take(Math.min(this.lines.length, Math.max(1, (this.line || 0) + step)));
      });
    }
    this.show("", "");
  }

  show(name, text) {
    if (this.name === name && this.lines) return;
    this.name = name;
    this.line = 0;
    const language = languageOf(name);
    this.lines = (text ? text.replace(/\n$/, "").split("\n") : []).map((line, place) => h("div",
      { class: "line", id: this.choose ? `g${place + 1}` : null, "data-line": place + 1, role: this.choose ? "option" : null, "aria-selected": this.choose ? "false" : null, "aria-label": this.choose && !line.trim() ? `line ${place + 1}, blank` : null },
      h("span", { class: "no", "aria-hidden": "true" }, String(place + 1)), h("span", {}, coloured(line, language))));
    this.element.replaceChildren(...(this.lines.length ? this.lines : [this.choose ? h("div", { role: "option", "aria-selected": "false" }, "nothing") : "nothing"]));
  }

  mark(at, same = []) {
    for (const line of this.element.querySelectorAll(".at, .same")) line.classList.remove("at", "same");
    for (const number of same) this.lines[number - 1]?.classList.add("same");
    for (const number of [].concat(at)) this.lines[number - 1]?.classList.add("at");
    const first = [].concat(at)[0];
    if (first) this.reveal(first);
  }

  reveal(number) {
    const line = this.lines[number - 1];
    if (!line) return;
    const top = line.offsetTop, height = this.element.clientHeight;
    if (top < this.element.scrollTop + 20 || top > this.element.scrollTop + height - 40) this.element.scrollTop = top - height / 3;
  }

  take(number) {
    if (this.line) this.lines[this.line - 1]?.setAttribute("aria-selected", "false");
    this.line = number;
    const line = this.lines[number - 1];
    if (!line) return;
    line.setAttribute("aria-selected", "true");
    this.element.setAttribute("aria-activedescendant", line.id);
    this.reveal(number);
    this.choose(number);
  }
}
