//! What is told to who may see something and may not do this with it: the role that it takes, what they are
//! there, and who has it. Members of a project know each other, and operators are whom everybody asks, so this
//! tells nobody of anybody they don't see.

use corpus_api::Principal;
use corpus_api::operation::Role;
use corpus_domain::{ProjectId, ProjectRole};
use sqlx::PgConnection;

use crate::{Error, Result};

/// As many who have the role are named.
const FEW: usize = 5;
/// As many are read, to know whether there are others.
const READ: i64 = 6;

/// Why it is refused.
pub async fn forbidden(
    conn: &mut PgConnection,
    who: &Principal,
    needs: Role,
    project: Option<ProjectId>,
) -> Result<Error> {
    let (Some(project), Some(role)) = (project, of_project(needs)) else {
        let logins = sqlx::query_scalar!(
            "select login from users where ops and disabled_at is null order by login limit $1",
            READ
        );
        let who = match named(&logins.fetch_all(conn).await?) {
            Named::Nobody => String::new(),
            Named::One(one) => format!(" {one} is an operator."),
            Named::Several(names) => format!(" {names} are operators."),
        };
        return Ok(Error::Forbidden(format!("Only operators may do this.{who}")));
    };
    let enough: Vec<String> = ProjectRole::ALL.iter().filter(|one| **one >= role).map(ToString::to_string).collect();
    let found = sqlx::query!(
        "select p.name, coalesce(array(select u.login from member_roles m
                    join users u on u.id = m.user_id and u.disabled_at is null
                    where m.project_id = p.id and m.role = any($2) order by u.login limit $3), '{}') as \"logins!\"
         from projects p where p.id = $1",
        project.0,
        &enough,
        READ,
    );
    let Some(found) = found.fetch_optional(conn).await? else { return Ok(corpus_api::Denied::Forbidden.into()) };
    let own = who.roles.get(&project).map_or("no member", |role| role.as_str());
    let has = match named(&found.logins) {
        Named::Nobody => "Nobody has that role now; an operator can give it.".to_owned(),
        Named::One(one) => format!("{one} has that role."),
        Named::Several(names) => format!("{names} have that role."),
    };
    Ok(Error::Forbidden(format!("This takes the role {role} in {}, and you are {own} there. {has}", found.name)))
}

/// Those who have it, for a sentence.
#[derive(Debug, PartialEq, Eq)]
enum Named {
    Nobody,
    One(String),
    Several(String),
}

fn named(logins: &[String]) -> Named {
    match logins {
        [] => Named::Nobody,
        [one] => Named::One(one.clone()),
        [first @ .., _] if first.len() >= FEW => Named::Several(format!("{} and others", first.join(", "))),
        [first @ .., last] => Named::Several(format!("{} and {last}", first.join(", "))),
    }
}

const fn of_project(needs: Role) -> Option<ProjectRole> {
    match needs {
        Role::Viewer => Some(ProjectRole::Viewer),
        Role::Developer => Some(ProjectRole::Developer),
        Role::Maintainer => Some(ProjectRole::Maintainer),
        Role::Member | Role::Ops => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_are_named_and_no_more() {
        let logins =
            |names: &str| names.split(' ').filter(|name| !name.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(named(&logins("")), Named::Nobody);
        assert_eq!(named(&logins("ada")), Named::One("ada".to_owned()));
        assert_eq!(named(&logins("a b c d e")), Named::Several("a, b, c, d and e".to_owned()));
        assert_eq!(named(&logins("a b c d e f")), Named::Several("a, b, c, d, e and others".to_owned()));
    }
}
