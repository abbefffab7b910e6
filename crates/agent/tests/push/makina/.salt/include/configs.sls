{% set cfg = opts.ms_project %}
{% set data = cfg.data %}
{% import "makina-states/_macros/h.jinja" as h with context %}
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

{% macro between() %}
    - watch:
      - mc_proxy: {{ cfg.name }}-configs-pre
    - watch_in:
      - mc_proxy: {{ cfg.name }}-configs-post
{% endmacro %}
{{ h.deliver_config_files(
     data.get('delivered', {}), dir='makina-projects/{0}/files'.format(cfg.name), mode='640', user=cfg.user, group=cfg.group,
     target_prefix=cfg.data_root, after_macro=between, prefix=cfg.name ~ '-delivered', project=cfg.name) }}

{{ cfg.name }}-configs-post:
  mc_proxy.hook: []
