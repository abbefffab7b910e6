//! The words of webhooks: where they lead, what they tell of, how their deliveries stand.

use crate::text::{text_type, word_enum};

word_enum!(
    /// What a webhook tells of.
    WebhookEvent, "event", {
        /// A deployment was ordered or pushed.
        DeploymentBegan = "deployment_began",
        /// A deployment went live, and its checks passed.
        DeploymentLive = "deployment_live",
        /// A deployment failed, and everything is as it was before.
        DeploymentRolledBack = "deployment_rolled_back",
        /// A deployment failed, and so did putting things back.
        DeploymentFailed = "deployment_failed",
        /// A guest that was requested is ready.
        GuestReady = "guest_ready",
        /// A guest was destroyed.
        GuestDestroyed = "guest_destroyed",
        /// A test that a person sent; nothing happened.
        Ping = "ping",
    }
);

word_enum!(
    /// How a delivery stands.
    DeliveryState, "delivery state", {
        /// It is tried, or tried again later.
        Waiting = "waiting",
        /// It was answered with success.
        Delivered = "delivered",
        /// It is not tried any more.
        Failed = "failed",
    }
);

text_type!(
    /// Where a webhook leads, as it was typed.
    WebhookUrl, "address of a webhook", "https:// or http://, a host and a path, 500 characters at most, without a login",
    pattern: r#"^https?://[!"$-.0->A-\[\]-~]+([/?][!"$-\[\]-~]*)?$"#, max: 500, example: "https://chat.example.org/hooks/atlas",
    |given| {
        let rest = given.strip_prefix("https://").or_else(|| given.strip_prefix("http://"))?;
        let printable = !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_graphic() && b != b'\\');
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        (printable && !host.is_empty() && !host.contains('@') && !rest.contains('#')).then(|| given.to_owned())
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_webhooks() {
        for good in ["https://chat.example.org/hooks/1?a=b", "http://192.0.2.7:8080/", "https://[2001:db8::1]/x"] {
            assert!(good.parse::<WebhookUrl>().is_ok(), "{good}");
        }
        for wrong in [
            "",
            "chat.example.org",
            "ftp://x/",
            "https://",
            "https:///x",
            "https://u:p@x/",
            "https://x/ y",
            "https://x/#y",
            "https://x\\@y/",
            "file:///etc/passwd",
            "https://ü/",
            "HTTPS://x/",
        ] {
            assert!(wrong.parse::<WebhookUrl>().is_err(), "{wrong}");
        }
    }
}
