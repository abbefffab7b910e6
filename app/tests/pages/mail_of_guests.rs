//! What pages say of guests' mail: whether it is taken, by whose word, and what became of it.

use corpus_api::guest_mail::{EnvironmentMail, GuestMail};
use corpus_app::FormState;
use corpus_app::pages::{environment_mail, guest_mail};
use corpus_domain::{EnvironmentMailSwitch, GuestMailSwitch};

use crate::{html, mail_pages};

fn of_guest(mail: &GuestMail) -> String {
    html(|| guest_mail::mail_view(mail, &FormState::default()))
}

fn of_environment(mail: &EnvironmentMail) -> String {
    html(|| environment_mail::mail_view(mail, &FormState::default()))
}

#[test]
fn what_was_sent_is_shown_by_the_hour_and_by_guest() {
    let page = of_guest(&mail_pages::guest(false));
    for text in [
        "100 messages an hour of each guest, 25 MiB each at most",
        "data-label=\"Over the limit\" class=\"num\">31<",
        "4210 messages",
        "on, as all guests of ",
        "as its environment: on",
        "action=\"/guests/",
    ] {
        assert!(page.contains(text), "{text}\n{page}");
    }
    let page = of_environment(&mail_pages::environment(false));
    for text in ["web.carto.example.net", "by its own switch", "All guests", "data-label=\"Sent\" class=\"num\">112<"] {
        assert!(page.contains(text), "{text}\n{page}");
    }
}

#[test]
fn where_no_relay_is_there_is_no_switch() {
    let pages = [of_guest(&mail_pages::guest(true)), of_environment(&mail_pages::environment(true))];
    for page in pages {
        assert!(page.contains("Not offered") && page.contains("sent nothing") && !page.contains("<form"), "{page}");
    }
}

#[test]
fn who_may_not_switch_it_sees_how_it_stands() {
    let own = GuestMail { may_change: false, is_on: false, mail: GuestMailSwitch::Off, ..mail_pages::guest(false) };
    let page = of_guest(&own);
    assert!(page.contains("off, by a switch of its own; on for other guests of ") && !page.contains("<form"), "{page}");
    let off = EnvironmentMail { may_change: false, mail: EnvironmentMailSwitch::Off, ..mail_pages::environment(false) };
    let page = of_environment(&off);
    assert!(page.contains("Mail is refused, and the sender told so.") && !page.contains("<form"), "{page}");
}
