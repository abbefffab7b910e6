//! What is called so: the few best of each kind, in one statement.
//!
//! Names are looked through as a whole: at twenty thousand of a kind that takes milliseconds. Deployments are
//! more, and are found by project and number, or by the beginning of their commit, which both have an index.

use corpus_api::search::{Hit, HitKind};
use corpus_domain::ProjectId;
use sqlx::PgConnection;
use uuid::Uuid;

/// What is looked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// A part of a name, in small letters.
    text: String,
    /// A project and the number of a deployment.
    numbered: Option<(String, i64)>,
    /// The beginning of a commit.
    commit: Option<String>,
}

/// The shortest beginning of a commit that is looked for.
const COMMIT: usize = 6;

impl Terms {
    /// What somebody typed.
    pub fn of(typed: &str) -> Self {
        let text = typed.trim().to_lowercase();
        let (project, number) = text.rsplit_once([' ', '#', '/']).unwrap_or_default();
        let project = project.trim_end_matches([' ', '#']).to_owned();
        let numbered = number.parse().ok().filter(|_| !project.is_empty()).map(|number| (project, number));
        let is_commit = text.len() >= COMMIT && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        Self { commit: is_commit.then(|| text.clone()), numbered, text }
    }
}

/// The things of these projects, and those that everybody may see, that are called so: those that begin so
/// first. Zones only for who has a page of them.
pub async fn find(
    conn: &mut PgConnection,
    terms: &Terms,
    visible: Option<&[ProjectId]>,
    zones: bool,
) -> sqlx::Result<Vec<Hit>> {
    let visible: Option<Vec<Uuid>> = visible.map(|projects| projects.iter().map(|project| project.0).collect());
    let (project, number) = terms.numbered.clone().unzip();
    let rows = sqlx::query!(
        r#"select kind as "kind!", name as "name!", detail as "detail!", path as "path!" from (
             (select 1 as kind, g.name, p.name || ', ' || g.environment || ', ' || g.state as detail,
                  '/guests/' || g.id as path
              from guests g join projects p on p.id = g.project_id
              where position($1 in g.name) > 0 and ($2::uuid[] is null or g.project_id = any($2))
              order by position($1 in g.name), g.name limit 8)
             union all
             (select 2, name, '', '/projects/' || name from projects
              where position($1 in name) > 0 and ($2::uuid[] is null or id = any($2))
              order by position($1 in name), name limit 6)
             union all
             (select 3, coalesce(name, address), case when name is null then state else address || ', ' || state end,
                  '/nodes/' || id
              from nodes
              where position($1 in lower(address)) > 0 or position($1 in lower(name)) > 0
              order by position($1 in lower(coalesce(name, address))), address limit 6)
             union all
             (select 4, n.name, 'leads to ' || g.name, '/guests/' || g.id
              from dns_names n join guests g on g.id = n.guest_id
              where position($1 in n.name) > 0 and ($2::uuid[] is null or n.project_id = any($2))
              order by position($1 in n.name), n.name limit 6)
             union all
             (select 5, name, '', '/zones/' || id from zones
              where $3 and position($1 in name) > 0 order by position($1 in name), name limit 4)
             union all
             (select 6, p.name || ' #' || d.number, d.environment || ', ' || d.state,
                  '/projects/' || p.name || '/deployments/' || d.number
              from projects p join deployments d on d.project_id = p.id and d.leader_id is null
              where p.name = $4 and d.number = $5 and ($2::uuid[] is null or p.id = any($2)))
             union all
             (select 6, p.name || ' #' || d.number, d.environment || ', ' || d.state,
                  '/projects/' || p.name || '/deployments/' || d.number
              from deployments d join projects p on p.id = d.project_id
              where d.leader_id is null and d.commit collate "C" >= $6 and d.commit collate "C" < $6 || 'g'
                and ($2::uuid[] is null or p.id = any($2))
              order by d.ordered_at desc limit 4)) found
           order by case when kind = 6 then 0 else position($1 in lower(name)) end, kind, name limit 24"#,
        terms.text,
        visible.as_deref(),
        zones,
        project,
        number,
        terms.commit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    Ok(rows.map(|row| Hit { kind: kind(row.kind), name: row.name, detail: row.detail, path: row.path }).collect())
}

const fn kind(number: i32) -> HitKind {
    match number {
        1 => HitKind::Guest,
        2 => HitKind::Project,
        3 => HitKind::Node,
        4 => HitKind::Name,
        5 => HitKind::Zone,
        _ => HitKind::Deployment,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed() {
        let numbered = |typed| Terms::of(typed).numbered;
        for typed in ["Atlas 12", "atlas #12", "atlas#12", " atlas/12 "] {
            assert_eq!(numbered(typed), Some(("atlas".to_owned(), 12)), "{typed}");
        }
        assert_eq!((numbered("atlas"), numbered("#12"), numbered("12")), (None, None, None));
        assert_eq!(Terms::of("A0d8d43").commit.as_deref(), Some("a0d8d43"));
        assert_eq!((Terms::of("a0d8").commit, Terms::of("atlas 1").commit), (None, None));
    }
}
