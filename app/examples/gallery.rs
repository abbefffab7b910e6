//! The style gallery: every page with sample values, on a loopback port, without a controller.
//!
//! `cargo run -p corpus-app --features ssr --example gallery`, then open <http://127.0.0.1:8090/>.
//! A folder with the built `corpus.js` and `corpus_bg.wasm` as its argument brings the islands to life.
//! It is for looking at the pages; what they do is tested against the real parts.

#[path = "gallery/samples.rs"]
mod samples;

#[path = "gallery/deployment_samples.rs"]
mod deployment_samples;
#[path = "gallery/project_samples.rs"]
mod project_samples;

#[path = "gallery/project_pages.rs"]
mod project_pages;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::routing::get;
use corpus_app::layout::{Page, alone, framed};
use corpus_app::pages::guest::{Shown, guest_view};
use corpus_app::pages::{self, Asked};
use corpus_app::place::Place;
use corpus_app::{Failure, FormState, Realms, Revealed, document};
use leptos::prelude::*;
use leptos_meta::Title;

const ADDRESS: &str = "127.0.0.1:8090";

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let options = LeptosOptions::builder().output_name("corpus").build();
    let render = leptos_axum::render_app_async_with_context(
        || (),
        move || document(options.clone(), || view! { <Gallery/> }.into_any()),
    );
    let style =
        || async { ([(CONTENT_TYPE, "text/css")], std::fs::read_to_string("style/corpus.css").unwrap_or_default()) };
    let folder = std::env::args().nth(1).unwrap_or_default();
    let built = move |axum::extract::Path(file): axum::extract::Path<String>| async move {
        let kind = if std::path::Path::new(&file).extension().is_some_and(|kind| kind == "wasm") {
            "application/wasm"
        } else {
            "text/javascript"
        };
        ([(CONTENT_TYPE, kind)], std::fs::read(format!("{folder}/{file}")).unwrap_or_default())
    };
    let app = Router::new().route("/pkg/corpus.css", get(style)).route("/pkg/{file}", get(built)).fallback(render);
    axum::serve(tokio::net::TcpListener::bind(ADDRESS).await?, app).await
}

#[component]
fn Gallery() -> impl IntoView {
    let uri = use_context::<Parts>().map(|parts| parts.uri).unwrap_or_default();
    let (path, variant) = (uri.path().to_owned(), uri.query().unwrap_or_default().to_owned());
    let page = page(&path, &variant);
    let title = page.title();
    let view = if path == "/login" {
        alone(page)
    } else {
        framed(page, &Place::of(&path), &path, &samples::operator(), &samples::counts())
    };
    view! { <Title text=title/>{view} }
}

fn form(form: &str, values: &[(&str, &str)]) -> FormState {
    FormState::new(form, values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
}

#[expect(clippy::too_many_lines, reason = "a table of pages")]
fn page(path: &str, variant: &str) -> Page {
    let who = samples::operator();
    let none = FormState::default();
    let (nodes, guests, jobs) = (samples::nodes(), samples::guests(), samples::jobs());
    let empty = variant == "empty";
    let some = |count: usize| if empty { 0 } else { count };
    match path {
        "/login" => {
            let refused = form("", &[("login", "dev.lead")]).status(401).message("Login name or password is wrong");
            pages::login::page(
                &Asked { form: if variant == "wrong" { refused } else { none }, ..Asked::default() },
                Realms { ldap: true },
            )
        }
        "/" => {
            let body = pages::overview::overview_view(
                &who,
                &samples::counts(),
                nodes.get(..some(5)).unwrap_or_default(),
                guests.get(..some(4)).unwrap_or_default(),
                &pages::overview::Done {
                    open: jobs.get(..some(3)).unwrap_or_default(),
                    latest: jobs.get(..some(8).min(jobs.len())).unwrap_or_default(),
                    deployments: project_samples::deployments().get(..some(4)).unwrap_or_default(),
                },
            );
            Page::new("overview", "Overview", body)
        }
        "/nodes" => Page::new(
            "nodes",
            "Compute nodes",
            pages::nodes::nodes_view(&who, nodes.get(..some(5)).unwrap_or_default()),
        ),
        "/nodes/link" => {
            let second = form(
                "",
                &[
                    ("address", "node-10.lyon.example.net"),
                    ("port", "22"),
                    ("user", "root"),
                    ("environments", "dev"),
                    ("host_key", "ssh-ed25519 AAAA"),
                    ("fingerprint", samples::FINGERPRINT),
                    ("algorithm", "ssh-ed25519"),
                ],
            )
            .status(200);
            let wrong = form("", &[("address", "node-10;reboot"), ("port", "22"), ("user", "root")])
                .error(
                    "address",
                    "address \"node-10;reboot\" is not valid: a host name such as node-01.example.org or an IP address",
                )
                .error("environments", "Choose at least one environment that the node takes guests of.");
            let state = match variant {
                "second" => second,
                "wrong" => wrong,
                _ => none,
            };
            Page::new("link-node", "Link a compute node", pages::link::link_view(samples::KEY, &state))
                .under("Compute nodes", "/nodes")
        }
        "/guests" => {
            Page::new("guests", "Guests", pages::guests::guests_view(&who, guests.get(..some(4)).unwrap_or_default()))
        }
        "/guests/new" => {
            let wrong = form("", &[("name", "www"), ("environment", "dev"), ("ip", "10.6.0.1")])
                .error("name", "guest name \"www\" is not valid: a full host name such as www.example.org")
                .error("ip", "10.6.0.1 is outside of 10.5.0.0/16");
            Page::new(
                "request-guest",
                "Request a guest",
                pages::request::request_view(
                    &who,
                    &nodes,
                    &samples::projects(),
                    if variant == "wrong" { &wrong } else { &none },
                    "0",
                ),
            )
            .under("Guests", "/guests")
        }
        "/dns" => Page::new(
            "dns",
            "DNS",
            pages::dns::dns_view(
                &who,
                samples::zones().get(..some(2)).unwrap_or_default(),
                if empty { &[] } else { guests.first().map_or(&[], |guest| &guest.names) },
                &none,
            ),
        ),
        "/dns/zones/00000000-0000-0000-0000-000000000047" => {
            let wrong = form("", &[("access", "only"), ("projects", "nobody")])
                .error("projects", "There is no project nobody.");
            let zone = samples::zones().remove(0);
            let view = pages::zone::zone_view(&zone, if variant == "wrong" { &wrong } else { &none });
            Page::new("zone", zone.name.to_string(), view).under("DNS", "/dns")
        }
        "/jobs" => {
            Page::new("jobs", "Jobs", pages::jobs::jobs_view("all", jobs.get(..some(6)).unwrap_or_default(), 0, 2))
        }
        "/keys" => Page::new(
            "keys",
            "SSH keys",
            pages::keys::keys_view(samples::keys().get(..some(2)).unwrap_or_default(), &none),
        ),
        "/keys/claim/0199d3c0-0000-7000-8000-000000000090" => {
            let wrong = form("", &[("signature", "-----BEGIN SSH SIGNATURE-----")])
                .error("signature", "this is no signature, or only a part of one: paste all lines, from BEGIN SSH SIGNATURE to END SSH SIGNATURE");
            let state = if variant == "wrong" { &wrong } else { &none };
            Page::new(
                "key-claim",
                "Show that the key is yours",
                pages::key_claim::claim_view(&samples::key_claim(), state),
            )
            .under("SSH keys", "/keys")
        }
        "/mail" => Page::new("mail", "Mail", pages::mail::mail_view(corpus_domain::MailPreference::Own, &none)),
        "/audit" => {
            Page::new("audit", "Audit", pages::audit::audit_view(1, &samples::audit(), &samples::refused_logins()))
        }
        "/denied" => pages::error::page(&Failure {
            status: 403,
            title: "Not permitted".into(),
            message: "Your roles do not allow this.".into(),
        }),
        _ => with_id(path, variant),
    }
}

fn with_id(path: &str, variant: &str) -> Page {
    let (who, blank, jobs) = (samples::operator(), FormState::default(), samples::jobs());
    if let Some(page) = project_pages::page(&Place::of(path), variant) {
        return page;
    }
    let (nodes, guests) = (samples::nodes(), samples::guests());
    let at = variant.parse::<usize>().unwrap_or(0);
    match (Place::of(path), nodes.get(at), guests.get(at), samples::job_details().get(at)) {
        (Place::Node(_), Some(node), _, _) => Page::new(
            "node",
            node.address.to_string(),
            pages::node::node_view(&who, node, guests.get(..2).unwrap_or_default(), &jobs, &blank),
        )
        .under("Compute nodes", "/nodes"),
        (Place::UnlinkNode(_), Some(node), _, _) => {
            Page::new("unlink-node", "Unlink", pages::unlink::unlink_view(node, &guests, &blank))
        }
        (Place::DestroyGuest(_), _, Some(guest), _) => {
            Page::new("destroy-guest", "Destroy", pages::destroy::destroy_view(guest, &blank))
        }
        (Place::Guest(_), _, Some(guest), _) => {
            let revealed = Revealed("correct-horse-battery".into());
            let shown = Shown {
                guest,
                environment: (at == 0).then_some((corpus_domain::EnvironmentState::Ready, true)),
                zones: &samples::zones(),
                jobs: &jobs,
                form: &blank,
                revealed: (at == 1).then_some(&revealed),
            };
            Page::new("guest", guest.name.to_string(), guest_view(&who, &shown)).under("Guests", "/guests")
        }
        (Place::Job(_), _, _, Some(job)) => {
            Page::new("job", job.job.title.clone(), pages::job::job_view(&who, job, &samples::log(), &blank))
                .under("Jobs", "/jobs")
        }
        _ => pages::error::page(&Failure {
            status: 404,
            title: "Not found".into(),
            message: "There is no page at this address.".into(),
        }),
    }
}
