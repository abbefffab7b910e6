//! The recipes that makina-states laid into each project for archive and rollback, which only copy the tree once more.
//!
//! Corpus keeps a copy before it changes anything, and puts it back; these would do the same again, as the project's user, into
//! folders that only root reads, and would so keep the project from being deployed at all. There are three kinds: one that
//! includes that of makina-states, one that says it in place, and one that has the paths of a deployment of long ago. A recipe is
//! one of them only if each of its lines is; one that also dumps a database is the project's own, and runs.

/// Whether a recipe does nothing but copy the tree.
pub fn is_stock(text: &str) -> bool {
    let mut copies = false;
    for line in statements(text).lines().map(str::trim).filter(|line| !line.is_empty()) {
        if is_copy(line) {
            copies = true;
        } else if !is_frame(line) {
            return false;
        }
    }
    copies
}

/// The text without what jinja takes out of it, and without comments.
fn statements(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, tag)) =
        rest.split_once("{%").into_iter().chain(rest.split_once("{#")).min_by_key(|(before, _)| before.len())
    {
        kept.push_str(before);
        let comment = rest[before.len()..].starts_with("{#");
        let ended = tag.split_once(if comment { "#}" } else { "%}" });
        rest = ended.map_or("", |(_, after)| after);
        // What is decided or asked elsewhere is more than a copy.
        let said = ended.map_or(tag, |(said, _)| said).trim_matches(['-', ' ', '\n']);
        let names =
            ["set ", "macro do()", "endmacro"].iter().any(|word| said.starts_with(word)) && !said.contains("salt");
        if !comment && !names {
            kept.push_str("\nis decided\n");
        }
    }
    kept.push_str(rest);
    kept.lines().filter(|line| !line.trim_start().starts_with('#')).collect::<Vec<_>>().join("\n")
}

/// What copies: the tree into an archive, an archive into the tree, or the recipe of makina-states that does.
fn is_copy(line: &str) -> bool {
    if let Some(included) = line.strip_prefix("- makina-states.projects.") {
        return [".archive", ".rollback"].iter().any(|name| included.ends_with(name)) && !included.contains(' ');
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let ["rsync", flags, "--delete", from, to] = words.as_slice() else { return false };
    matches!(*flags, "-Aa" | "-Aav" | "-a" | "-av") && is_tree(from) && is_tree(to)
}

/// A path, in quotes, of the tree or of an archive's copy of it.
fn is_tree(path: &str) -> bool {
    let Some(path) = path.strip_prefix('"').and_then(|path| path.strip_suffix("/\"")) else { return false };
    let named = ["{{cfg.project_root}}", "{{dest}}", "{{fdest}}"].contains(&path.replace(' ', "").as_str());
    let copied = || path.ends_with("/project") || path.ends_with("/project.failed");
    named || (path.starts_with("/srv/projects/") && copied() && !path.contains([' ', '{', '$', '`', '"', '\\']))
}

/// What stands around that.
fn is_frame(line: &str) -> bool {
    let quoted = |line: &str, before: &str, after: &str| {
        let path = line.strip_prefix(before).and_then(|line| line.strip_suffix(after));
        path.is_some_and(|path| is_tree(&format!("\"{path}/\"")))
    };
    let state = line.strip_suffix(':').is_some_and(|id| !id.contains([' ', ':', '"', '\'']));
    let known = [
        "include:",
        "cmd.run:",
        "- name: |",
        "set -e",
        "fi",
        "fi;",
        "- require:",
        "- watch:",
        "{{do()}}",
        "{{ do() }}",
    ];
    let user =
        line.strip_prefix("- user: ").is_some_and(|user| !user.trim().contains(' ') || user.trim() == "{{ cfg.user }}");
    let order = line.strip_prefix("- cmd:").is_some_and(|id| !id.trim().contains([' ', ':']));
    let tests = ["if [ ! -d \"", "if [ -d \""]
        .iter()
        .any(|before| quoted(line, before, "\" ];then") || quoted(line, before, "\" ]; then"));
    let makes = quoted(line, "mkdir -p \"", "\";") || quoted(line, "mkdir -p \"", "\"");
    state || known.contains(&line) || user || order || tests || makes
}

#[cfg(test)]
mod tests {
    use super::*;

    const INCLUDED: &str = "{% set cfg = opts['ms_project'] %}\ninclude:\n  - makina-states.projects.{{cfg['api_version']}}.{{cfg['installer']}}.archive\n";

    const SAID: &str = "{# kept #}
{% set cfg = opts['ms_project'] %}
{% set dest = '{0}/project'.format(cfg['current_archive_dir']) %}
{{cfg.name}}-keep:
  cmd.run:
    - name: |
            set -e
            if [ ! -d \"{{dest}}\" ];then
              mkdir -p \"{{dest}}\";
            fi;
            rsync -Aa --delete \"{{cfg.project_root}}/\" \"{{dest}}/\"
    - user: {{cfg.user}}
";

    const BAKED: &str = "
shop-failed:
  cmd.run:
    - name: |
            if [ -d \"/srv/projects/shop/archives/2015-01-30_18_26-06_ad5c/project\" ];then
              rsync -Aa --delete \"/srv/projects/shop/project/\" \"/srv/projects/shop/archives/2015-01-30_18_26-06_ad5c/project.failed/\"
            fi;
    - user: shop-user

shop-back:
  cmd.run:
    - name: |
            if [ -d \"/srv/projects/shop/archives/2015-01-30_18_26-06_ad5c/project\" ];then
              rsync -Aav --delete \"/srv/projects/shop/archives/2015-01-30_18_26-06_ad5c/project/\" \"/srv/projects/shop/project/\"
            fi;
    - user: shop-user
    - require:
      - cmd:  shop-failed
";

    #[test]
    fn the_three_kinds_are_known() {
        for text in [INCLUDED, SAID, BAKED] {
            assert!(is_stock(text), "{text}");
        }
        assert!(is_stock(
            "{% set cfg = opts['ms_project'] %}\n{% macro do() %}\n{{cfg.name}}-x:\n  cmd.run:\n    - name: |\n      rsync -Aav --delete \"{{dest}}/\" \"{{cfg.project_root}}/\"\n{% endmacro %}\n{{do()}}\n"
        ));
    }

    /// Whatever does more is the project's own.
    #[test]
    fn one_that_does_more_is_not() {
        let more = [
            SAID.replace("            rsync", "            pg_dump shop >\"{{dest}}/dump.sql\"\n            rsync"),
            SAID.replace("\"{{dest}}/\"\n", "\"{{dest}}/\"; systemctl stop shop\n"),
            SAID.replace("\"{{cfg.project_root}}/\"", "\"{{cfg.data_root}}/\""),
            SAID.replace("{{cfg.name}}-keep:", "{% if cfg.data.db %}\n{{cfg.name}}-keep:") + "{% endif %}",
            format!("{INCLUDED}\nshop-dump:\n  cmd.run:\n    - name: mysqldump shop\n"),
            INCLUDED.replace(".archive", ".install"),
            BAKED.replace("/srv/projects/shop/project/\"", "/srv/projects/shop/data/\""),
            BAKED.replace("-Aa --delete", "-Aa --delete --exclude=x"),
        ];
        for text in more {
            assert!(!is_stock(&text), "{text}");
        }
        assert!(
            !is_stock("") && !is_stock("{% set cfg = opts['ms_project'] %}\n") && !is_stock("shop:\n  test.nop: []\n")
        );
    }
}
