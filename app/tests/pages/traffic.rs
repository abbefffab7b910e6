//! What the page of traffic says: numbers, plots that are tables too, and what is missing.

use corpus_app::pages::traffic::traffic_view;

use crate::{html, traffic_pages};

#[test]
fn plots_are_drawn_and_said() {
    let page = html(|| traffic_view(&traffic_pages::traffic(false)));
    for text in [
        "Requests by answer",
        "were answered with 5xx.",
        "Time to the answer",
        "95 of 100 were answered within 3.00 s at worst, in a quarter of an hour.",
        "192.0.2.8 was not read",
        "GET /tiles/12/2048/1361.png",
        "corpus logs --access -f carto-api/prod",
        "aria-current=\"page\">A day<",
    ] {
        assert!(page.contains(text), "{text}\n{page}");
    }
    assert_eq!(page.matches("role=\"img\"").count(), 2);
    // The night is a gap of the line, and no row of a table.
    assert_eq!(page.matches("class=\"line most\"").count(), 1);
    let drawn = page.split("<path").find(|path| path.contains("class=\"line most\"")).unwrap();
    let line = drawn.split(" d=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(line.starts_with("M288 ") && line.matches('M').count() == 1, "{line}");
    let table = page.split("<th>2xx").nth(1).unwrap().split("</table>").next().unwrap();
    assert_eq!(table.matches("<tr>").count(), 84, "{table}");
}

#[test]
fn without_a_name_it_says_what_to_do() {
    let page = html(|| traffic_view(&traffic_pages::traffic(true)));
    assert!(page.contains("No requests in this time") && page.contains("Attach a name"), "{page}");
    assert!(
        page.contains("Nothing failed") && page.contains("Nothing to follow yet") && !page.contains("<svg viewBox")
    );
}

#[test]
fn what_strangers_sent_is_text() {
    let mut traffic = traffic_pages::traffic(false);
    traffic.errors[0].path = "/<script>alert(1)</script>".to_owned();
    let page = html(|| traffic_view(&traffic));
    assert!(page.contains("/&lt;script&gt;alert(1)") && !page.contains("<script>alert"), "{page}");
}
