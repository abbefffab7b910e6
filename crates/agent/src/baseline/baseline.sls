{#- What operators want of every node. All of it is said by the pillar `baseline`. -#}
{%- set wanted = pillar['baseline'] -%}
{%- set about = 'Operator of Corpus' -%}
{%- set operators = wanted['operators'] | map(attribute='name') | list -%}

{%- if wanted['packages'] %}
packages:
  pkg.installed:
    - pkgs: {{ wanted['packages'] | json }}
{%- endif %}

{%- for operator in wanted['operators'] %}
account of {{ operator['name'] }}:
  user.present:
    - name: {{ operator['name'] }}
    - fullname: {{ about }}
    - shell: /bin/bash
    - expire: -1

keys of {{ operator['name'] }}:
  file.managed:
    - name: /etc/ssh/corpus-operators/{{ operator['name'] }}
    - contents: {{ (operator['keys'] | join('\n')) | json }}
    - mode: '0644'
    - makedirs: true
    - dir_mode: '0755'
{%- endfor %}

{#- Who is no operator any more is out: without keys, without rights, and expired. What is theirs stays. #}
{%- for name in salt['user.list_users']() if name not in operators %}
{%- if salt['user.info'](name)['fullname'] == about %}
{{ name }} is out:
  user.present:
    - name: {{ name }}
    - fullname: {{ about }}
    - expire: 1
  file.absent:
    - name: /etc/ssh/corpus-operators/{{ name }}
{%- endif %}
{%- endfor %}

{%- if operators %}
sudo is there:
  pkg.installed:
    - name: sudo
    - unless: command -v sudo

rights of operators:
  file.managed:
    - name: /etc/sudoers.d/corpus-operators
    - contents:
{%- for name in operators %}
      - '{{ name }} ALL=(ALL:ALL) NOPASSWD: ALL'
{%- endfor %}
    - mode: '0440'
    - require:
      - pkg: sudo is there
{%- else %}
rights of operators:
  file.absent:
    - name: /etc/sudoers.d/corpus-operators
{%- endif %}

{#- Where sshd looks for keys now, it looks still: whoever enters by them must not be shut out. What is checked is a part of
    sshd_config(5) as well as the whole. #}
{%- set ours = '/etc/ssh/corpus-operators/%u' %}
{%- set places = [] %}
{%- for line in salt['cmd.run_stdout']('/usr/sbin/sshd -T', python_shell=false).splitlines() %}
{%- if line.startswith('authorizedkeysfile ') %}
{%- for place in line.split()[1:] if place not in (ours, 'none') %}{% do places.append(place) %}{% endfor %}
{%- endif %}
{%- endfor %}
how SSH lets in:
  file.managed:
    - name: /etc/ssh/sshd_config.d/corpus-baseline.conf
    - contents:
      - '# Kept by Corpus; changes are overwritten.'
      - AuthorizedKeysFile {{ (places or ['.ssh/authorized_keys']) | join(' ') }} {{ ours }}
{%- if not wanted['password_login'] %}
      - PasswordAuthentication no
      - KbdInteractiveAuthentication no
{%- endif %}
    - mode: '0644'
    - makedirs: true
    - check_cmd: /usr/sbin/sshd -t -f
  cmd.run:
    - name: systemctl reload ssh
    - onchanges:
      - file: how SSH lets in

{%- if wanted['time_servers'] %}
what sets the time:
  pkg.installed:
    - name: systemd-timesyncd
    - unless: systemctl cat systemd-timesyncd.service

time servers:
  file.managed:
    - name: /etc/systemd/timesyncd.conf.d/corpus.conf
    - contents:
      - '[Time]'
      - NTP={{ wanted['time_servers'] | join(' ') }}
    - mode: '0644'
    - makedirs: true
  cmd.run:
    - name: systemctl try-restart systemd-timesyncd
    - onchanges:
      - file: time servers
{%- endif %}

{%- if wanted['root_mail'] %}
mail of root:
  file.replace:
    - name: /etc/aliases
    - pattern: '^root:.*$'
    - repl: 'root: {{ wanted['root_mail'] }}'
    - append_if_not_found: true
    - ignore_if_missing: true
  cmd.run:
    - name: newaliases
    - onlyif: command -v newaliases
    - onchanges:
      - file: mail of root
{%- endif %}
