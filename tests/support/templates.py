"""Chat templates: one that keeps prefixes, and ways to break them."""

KEEPS = """\
{%- macro turn(m) -%}
{%- if m.reasoning_content -%}<think>{{ m.reasoning_content }}</think>{%- endif -%}
{{- m.content -}}
{%- for call in m.tool_calls or [] -%}
<tool_call>{{ {"name": call.function.name, "arguments": call.function.arguments} | tojson }}</tool_call>
{%- endfor -%}
{%- endmacro -%}
{%- if tools -%}<tools>{{ tools | tojson }}</tools>{%- endif -%}
{%- for m in messages -%}
<|{{ m.role }}|>{{ turn(m) }}<|end|>
{%- endfor -%}
{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}
"""
"""History stands as it was generated, whatever it holds."""

STRIPS_REASONING = KEEPS.replace(
    "{%- for m in messages -%}",
    """{%- set asked = messages | selectattr("role", "equalto", "user") | list | last -%}
{%- set ns = namespace(last=0) -%}
{%- for m in messages -%}{%- if m is sameas asked -%}{%- set ns.last = loop.index0 -%}{%- endif -%}{%- endfor -%}
{%- for m in messages -%}
{%- if m.reasoning_content and loop.index0 < ns.last -%}
<|{{ m.role }}|>{{ turn(dict(m, reasoning_content="")) }}<|end|>{%- continue -%}
{%- endif -%}""",
)
"""Reasoning before the last user turn is left out, as many templates do."""

TRIMS = KEEPS.replace("{{- m.content -}}", "{{- m.content | trim -}}")
"""White space around an answer is left out, as many templates do."""

SHORTENS_RESULTS = KEEPS.replace(
    "{{ turn(m) }}<|end|>", "{{ m.content[:3] if m.role == 'tool' and not loop.last else turn(m) }}<|end|>"
)
"""Of a tool result only the beginning is left as soon as it was answered."""

MOVES_TOOLS = KEEPS.replace("{%- if tools -%}<tools>{{ tools | tojson }}</tools>{%- endif -%}", "").replace(
    "<|{{ m.role }}|>",
    """{%- if m.role == "user" and m is sameas (messages | selectattr("role", "equalto", "user") | list | last) -%}
<tools>{{ tools | tojson }}</tools>
{%- endif -%}
<|{{ m.role }}|>""",
)
"""Tools stand before the last user turn, wherever that is."""

THINKING_SWITCH = KEEPS.replace(
    "<|assistant|>{%- endif -%}",
    "<|assistant|>{%- if enable_thinking is false -%}<think></think>{%- endif -%}{%- endif -%}",
)
"""With thinking switched off the prompt of an answer has an empty block that history has not."""
