"""Entry points with the call signatures of other projects, over the loaded kernels.

sglang            the DeepSeek-V4 top-k calls of sglang 0.5.23
sglang_compress   compressor plans of its first ABI, for the ops of `compress`

Where a signature has no room for a workspace, the module here owns one per device and stream.
"""
