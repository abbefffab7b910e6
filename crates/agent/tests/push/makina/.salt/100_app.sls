{% set cfg = opts.ms_project %}
{% set data = cfg.data %}
{% import "makina-projects/{0}/task_users.sls".format(cfg.name) as known with context %}
include:
  - makina-projects.{{ cfg.name }}.include.configs

{{ cfg.name }}-upstream:
  mc_git.latest:
    - name: {{ data.upstream }}
    - target: {{ cfg.data_root }}/upstream
    - rev: {{ data.rev }}
    - user: {{ cfg.user }}
    - watch:
      - mc_proxy: {{ cfg.name }}-configs-post

{{ cfg.name }}-buildout:
  buildout.installed:
    - name: {{ cfg.project_root }}
    - config: salt.cfg
    - user: {{ cfg.user }}
    - newest: false
    - use_vt: true
    - output_loglevel: info
    - watch:
      - mc_git: {{ cfg.name }}-upstream

{{ cfg.name }}-index:
  file.managed:
    - name: {{ data.index }}
    - user: {{ cfg.user }}
    - contents: |
        <h1>{{ data.title }}</h1>
        <p>{{ cfg.name }} in {{ cfg.default_env }} ({{ data.mode }}, {{ data.family }}{{ cfg.family }}), known: {{ known.users.keys() | join(' ') }}</p>
        <p>{{ data.roots | join(' ') }} {{ data.tiles }}</p>
    - watch:
      - buildout: {{ cfg.name }}-buildout
