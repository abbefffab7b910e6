//! The pages of guests' mail, with sample values.

use corpus_api::Version;
use corpus_api::guest_mail::{EnvironmentMail, GuestMail, MailCounts, MailHour, MailLimits, MailOfGuest};
use corpus_app::FormState;
use corpus_app::layout::Page;
use corpus_app::pages::{environment_mail, guest_mail};
use corpus_app::route::Route;
use corpus_domain::{Environment, EnvironmentMailSwitch, GuestId, GuestMailSwitch};

use crate::project_samples::{before, id, word};

/// The page of a route, if it is one of these; `variant` is `empty` where no relay is configured and nothing was sent.
pub fn page(route: &Route, variant: &str) -> Option<Page> {
    let (is_empty, form) = (variant == "empty", FormState::default());
    Some(match route {
        Route::GuestMail(_) => {
            Page::new("guest-mail", "Mail", guest_mail::mail_view(&guest(is_empty), &form)).under("Guests", "/guests")
        }
        Route::EnvironmentMail(..) => {
            let view = environment_mail::mail_view(&environment(is_empty), &form);
            Page::new("environment-mail", "Mail", view).under("Projects", "/projects")
        }
        _ => return None,
    })
}

const LIMITS: MailLimits = MailLimits { messages_per_hour: 100, max_message_bytes: 25 << 20 };

fn counts(accepted: u64, limited: u64) -> MailCounts {
    MailCounts { accepted, limited, refused: 2, failed: 1, bytes: accepted * 18_432 }
}

/// Mail of a guest.
pub fn guest(is_empty: bool) -> GuestMail {
    let hour = |ago: i64, accepted, limited| MailHour { hour: before(ago * 3600), counts: counts(accepted, limited) };
    GuestMail {
        guest: GuestId(id(11)),
        name: word("web.carto.example.net"),
        project: word("carto-api"),
        environment: Environment::Dev,
        limits: (!is_empty).then_some(LIMITS),
        is_on: !is_empty,
        mail: GuestMailSwitch::Environment,
        environment_mail: EnvironmentMailSwitch::On,
        hours: if is_empty { Vec::new() } else { vec![hour(0, 100, 31), hour(2, 12, 0)] },
        month: if is_empty { MailCounts::default() } else { counts(4_210, 31) },
        read_at: (!is_empty).then(|| before(4)),
        may_change: true,
        version: Version::of(&GuestMailSwitch::Environment),
    }
}

/// Mail of an environment.
pub fn environment(is_empty: bool) -> EnvironmentMail {
    let guest = |number, name: &str, mail: GuestMailSwitch, accepted| MailOfGuest {
        guest: GuestId(id(number)),
        name: word(name),
        is_on: mail != GuestMailSwitch::Off,
        mail,
        counts: counts(accepted, 31),
    };
    let guests = vec![
        guest(11, "web.carto.example.net", GuestMailSwitch::Environment, 112),
        guest(12, "worker.carto.example.net", GuestMailSwitch::Off, 0),
    ];
    EnvironmentMail {
        project: word("carto-api"),
        environment: Environment::Dev,
        limits: (!is_empty).then_some(LIMITS),
        mail: EnvironmentMailSwitch::On,
        day: if is_empty { MailCounts::default() } else { counts(112, 62) },
        guests: if is_empty { Vec::new() } else { guests },
        may_change: true,
        version: Version::of(&EnvironmentMailSwitch::On),
    }
}
