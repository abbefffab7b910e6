{% set cfg = opts['ms_project'] %}
{% set data = cfg.data %}
{% set ugs = salt['mc_usergroup.settings']() %}
{% set apache = salt['mc_apache.settings']() %}
{{ cfg.name }}-htpasswd:
  file.managed:
    - name: {{ data.htpasswd }}
    - replace: false
    - user: {{ apache.httpd_user }}
    - group: {{ ugs.group }}
    - mode: 770

{% for row in data.get('http_users', []) %}
{% for user, password in row.items() %}
{{ cfg.name }}-{{ user }}-htpasswd:
  webutil.user_exists:
    - name: {{ user }}
    - password: {{ password }}
    - htpasswd_file: {{ data.htpasswd }}
    - options: m
    - force: true
    - watch:
      - file: {{ cfg.name }}-htpasswd
{% endfor %}
{% endfor %}

prereqs-{{ cfg.name }}:
  pkg.{{ salt['mc_pkgs.settings']()['installmode'] }}:
    - pkgs:
      - git
      - rsync
      - git

{{ cfg.name }}-dirs:
  file.directory:
    - makedirs: true
    - user: {{ cfg.user }}
    - group: {{ cfg.group }}
    - watch:
      - pkg: prereqs-{{ cfg.name }}
    - names:
      - {{ data.www }}
      - {{ data.app_root }}
