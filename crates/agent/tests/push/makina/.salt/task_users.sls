{% set data = opts.ms_project.data %}
{% set users = {} %}
{% for row in data.get('users', []) %}
{% for user, udata in row.items() %}
{% do users.update({user: salt['mc_utils.dictupdate'](users.setdefault(user, {}), udata)}) %}
{% endfor %}
{% endfor %}
users-are-known:
  cmd.run:
    - name: echo "{{ users.keys() | join(' ') }} of {{ data.title }}" | tee {{ opts.ms_project.data_root }}/known
