//! Who asks: an operator, and members with 1, 5 and 50 projects, each signed in.

use sqlx::PgConnection;

/// Somebody who is signed in.
#[derive(Debug, Clone)]
pub struct Reader {
    /// In words.
    pub name: &'static str,
    /// The login name.
    pub login: &'static str,
    /// The cookie of the session.
    pub cookie: String,
    /// Whether it is an operator.
    pub ops: bool,
    /// Whether the largest project is one of theirs.
    pub of_largest: bool,
    /// The key that they say is theirs.
    pub claim: String,
}

const READERS: [(&str, &str); 4] =
    [("ops", "member1"), ("1 project", "member2"), ("5 projects", "member3"), ("50 projects", "member4")];

/// A session of each, as the server keeps those of browsers.
pub async fn sign_in(conn: &mut PgConnection) -> anyhow::Result<Vec<Reader>> {
    let mut readers = Vec::new();
    for (name, login) in READERS {
        let (session, ops, of_largest, claim): (String, bool, bool, String) = sqlx::query_as(
            "with session as (
                 insert into tower_sessions (id, data, expiry_date)
                 select translate(rtrim(encode(uuid_send(gen_random_uuid()), 'base64'), '='), '+/', '-_'),
                     jsonb_build_object('member', id), now() + interval '12 hours'
                 from users where login = $1
                 returning id)
             select session.id, u.ops, u.ops or exists (
                     select from memberships m join projects p on p.id = m.project_id where m.user_id = u.id and p.name = 'atlas'),
                 (select c.id::text from key_claims c where c.user_id = u.id)
             from users u, session where u.login = $1",
        )
        .bind(login)
        .fetch_one(&mut *conn)
        .await?;
        readers.push(Reader { name, login, cookie: format!("corpus={session}"), ops, of_largest, claim });
    }
    Ok(readers)
}
