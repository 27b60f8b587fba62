"""What instructions do: a row each with its types and a C++ expression, or the runtime function that does it.

rows     the text form of a table
scalar   scalar instructions and the condition they set
integer  vector integers of 32 and 64 bits
float32  vector fp32 and fp64
half     16 bits: integers and fp16
packed   pairs of values
convert  conversions between float formats of up to 16 bits
compare  every relation for every type
memory   spaces, operations and types that names are made of
matrix   what names of matrix instructions mean
steps    what one runtime function carries out
"""
