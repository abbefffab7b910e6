//! Words of the balance: how the requests of a name are spread over the guests of an environment.

use crate::names::Environment;
use crate::text::{text_type, word_enum};

word_enum!(
    /// Which guest of an environment the next request goes to.
    BalancePolicy, "policy of a balance", {
        /// One after the other.
        RoundRobin = "round_robin",
        /// The one with the fewest requests under way.
        FewestConnections = "fewest_connections",
    }
);

word_enum!(
    /// By what a visitor comes back to the guest that served them before.
    Stickiness, "stickiness", {
        /// By nothing: each request goes where the policy says.
        None = "none",
        /// By a cookie that the proxy sets.
        Cookie = "cookie",
        /// By their address, which then decides instead of the policy.
        Source = "source",
    }
);

/// What follows the id of a guest that is no environment's.
const GUEST: &str = "guest";

fn pool_id(given: &str) -> Option<String> {
    let (id, environment) = given.split_at_checked(36)?;
    let is_id = id.parse::<uuid::Uuid>().is_ok_and(|parsed| parsed.to_string() == id);
    let of = environment.strip_prefix('-')?;
    (is_id && (of == GUEST || of.parse::<Environment>().is_ok())).then(|| given.to_owned())
}

text_type!(
    /// The guests of an environment that share its names: its project's id, a hyphen and the environment. Or one guest by
    /// itself, for other nodes: its id and `-guest`.
    PoolId, "pool", "the id of a project, a hyphen, and dev, staging or prod; or the id of a guest and -guest",
    pattern: "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}-(dev|staging|prod|guest)$",
    max: 44, example: "0199d3c0-0000-7000-8000-000000000001-prod", pool_id
);

impl PoolId {
    /// That of an environment.
    pub fn of(project: crate::ProjectId, environment: Environment) -> Self {
        Self(format!("{project}-{environment}"))
    }

    /// That of one guest.
    pub fn of_guest(guest: crate::GuestId) -> Self {
        Self(format!("{guest}-{GUEST}"))
    }
}

text_type!(
    /// A path that a health check asks for, with a query if wanted. It becomes a word of the proxy's configuration, so it
    /// has nothing in it that means anything there.
    CheckPath, "path", "a slash, then letters, digits and /._~&+,;=:@?%- without spaces, 200 characters at most",
    pattern: "^/[A-Za-z0-9/._~&+,;=:@?%-]{0,199}$", max: 200, example: "/health",
    |given| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._~&+,;=:@?%-".contains(&byte);
        (given.starts_with('/') && given.bytes().all(plain)).then(|| given.to_owned())
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_plain_word() {
        for good in ["/", "/health", "/a/b?x=1&y=%20", "/~me/-/a.b:c@d"] {
            assert_eq!(good.parse::<CheckPath>().unwrap().as_str(), good);
        }
        for bad in ["", "health", "/a b", "/a\nserver x", "/a\"b", "/a'b", "/a\\b", "/a#b", "/$HOME", "/a{b", "/é"] {
            assert!(bad.parse::<CheckPath>().is_err(), "{bad:?} was accepted");
        }
        assert!(format!("/{}", "a".repeat(200)).parse::<CheckPath>().is_err());
    }

    #[test]
    fn a_pool_is_an_environments() {
        let project = crate::ProjectId::from(uuid::Uuid::nil());
        let pool = PoolId::of(project, Environment::Prod);
        assert_eq!(pool.as_str().parse::<PoolId>().unwrap(), pool);
        let alone = PoolId::of_guest(crate::GuestId::from(uuid::Uuid::nil()));
        assert_eq!(alone.as_str().parse::<PoolId>().unwrap(), alone);
        for bad in ["", "x-prod", "00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000000-x"] {
            assert!(bad.parse::<PoolId>().is_err(), "{bad:?} was accepted");
        }
        assert!("00000000-0000-0000-0000-00000000000 -prod".parse::<PoolId>().is_err());
    }
}
