{% set cfg = opts.ms_project %}
{% set data = cfg.data %}
{% set scfg = salt['mc_utils.json_dump'](cfg) %}
{{ cfg.name }}-configs-pre:
  mc_proxy.hook: []

{% for name, config in data.configs.items() %}
{{ cfg.name }}-config-{{ name }}:
  file.managed:
    - name: {{ config.target }}
    - source: {{ config.source }}
    - template: jinja
    - user: {{ cfg.user }}
    - group: {{ cfg.group }}
    - mode: {{ config.mode }}
    - defaults:
        project: "{{ cfg.name }}"
        data: |
              {{ scfg }}
    - watch:
      - mc_proxy: {{ cfg.name }}-configs-pre
    - watch_in:
      - mc_proxy: {{ cfg.name }}-configs-post
{% endfor %}

{{ cfg.name }}-configs-post:
  mc_proxy.hook: []
