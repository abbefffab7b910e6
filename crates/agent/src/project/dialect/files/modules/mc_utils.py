"""The tools of makina-states that recipes of projects use."""
import copy
import json

import corpus_dialect
import salt.utils.data
import salt.utils.dictupdate
import salt.utils.versions
import salt.utils.yaml

ABSENT = object()
# How a mapping is told in one line of a template, and read again.
NEWLINE = " ---ANTLISLASH_N--- "


def json_dump(data, pretty=False):
    return json.dumps(data, indent=4 if pretty else None, default=str)


def json_load(data):
    return json.loads(data.replace(NEWLINE, "\n")) if isinstance(data, str) else data


def yaml_dump(data, flow=False, nonewline=True):
    text = salt.utils.yaml.safe_dump(data, default_flow_style=flow)
    return text.replace("\n", " ") if nonewline else text


def iyaml_dump(data):
    return yaml_dump(data, flow=True)


def cyaml_load(text):
    return salt.utils.yaml.safe_load(text)


def generate_password(length=None):
    return corpus_dialect.password(length or 16)


def generate_stored_password(key, length=None, force=False, value=None):
    return corpus_dialect.stored_password(key, length or 16, force, value)


def dictupdate(dict1, dict2):
    return salt.utils.dictupdate.update(dict1, dict2)


def copy_dictupdate(dict1, dict2):
    return dictupdate(copy.deepcopy(dict1), copy.deepcopy(dict2))


def deepcopy(arg):
    return copy.deepcopy(arg)


def format_resolve(value, original_dict=None):
    known = original_dict or (value if isinstance(value, dict) else {})
    return corpus_dialect.resolve(value, [known])


def uniquify(seq):
    return list(dict.fromkeys(seq))


def odict(instance=True):
    return {} if instance else dict


def magicstring(thestr):
    return thestr.decode("utf-8", "replace") if isinstance(thestr, bytes) else str(thestr)


def unix_crypt(passwd):
    return __salt__["shadow.gen_password"](passwd)


def loose_version(version):
    return salt.utils.versions.LooseVersion(str(version))


def file_read(fic):
    with open(fic, encoding="utf-8") as file:
        return file.read()


def get(key, default="", delimiter=":"):
    """A value of the pillar, the options or the grains; its path is written with colons or with dots."""
    for data in (__pillar__, __opts__, __grains__):
        for path in (key, key.replace(".", delimiter)):
            value = salt.utils.data.traverse_dict_and_list(data, path, ABSENT, delimiter=delimiter)
            if value is not ABSENT:
                return value
        if key in data:
            return data[key]
    return default


def defaults(prefix, datadict, noresolve=False):
    """The mapping with what the pillar says otherwise below `prefix`."""
    datadict = copy.deepcopy(datadict)
    said = get(prefix, {})
    if isinstance(said, dict):
        datadict = dictupdate(datadict, copy.deepcopy(said))
    for key in datadict:
        value = __pillar__.get(f"{prefix}.{key}", ABSENT)
        if value is not ABSENT:
            datadict[key] = value
    return datadict if noresolve else format_resolve(datadict)


def is_a_str(value):
    return isinstance(value, str)


def is_a_bool(value):
    return isinstance(value, bool)


def is_a_int(value):
    return isinstance(value, int)


def is_a_float(value):
    return isinstance(value, float)


def is_a_number(value):
    return isinstance(value, (int, float, complex))


def is_a_dict(value):
    return isinstance(value, dict)


def is_a_list(value):
    return isinstance(value, list)


def is_a_tuple(value):
    return isinstance(value, tuple)


def is_a_set(value):
    return isinstance(value, set)


def is_iter(value):
    return isinstance(value, (list, dict, tuple, set))
