//! Markdown to the HTML of a page.
//!
//! A document is text of ours, but what gets into a page is a closed list all the same: what Markdown has words
//! for, with tables. HTML in a document is left out (comments mark what is measured), and so are images, which
//! the pages' policy forbids; their description stays. No style stands in it.

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd};

use super::boxes::boxed;
use super::links::led;
use super::sections::Section;

/// What a document is made of.
pub fn events(source: &str) -> Vec<Event<'_>> {
    Parser::new_ext(source, Options::ENABLE_TABLES).filter(is_kept).collect()
}

fn is_kept(event: &Event<'_>) -> bool {
    use Event::{End, Html, InlineHtml, Start};
    !matches!(
        event,
        Html(_) | InlineHtml(_) | Start(Tag::HtmlBlock | Tag::Image { .. }) | End(TagEnd::HtmlBlock | TagEnd::Image)
    )
}

/// The page of it, without its title.
pub fn html(events: Vec<Event<'_>>, sections: &[Section]) -> String {
    let events = boxed(led(anchored(events, sections)), sections);
    let mut html = String::new();
    pulldown_cmark::html::push_html(&mut html, events.into_iter());
    html
}

/// Gives the headings their ids, and leaves out the first, the title.
fn anchored<'a>(events: Vec<Event<'a>>, sections: &[Section]) -> Vec<Event<'a>> {
    let title = events.iter().position(|event| matches!(event, Event::End(TagEnd::Heading(_))));
    let mut ids = sections.iter().skip(1).map(|section| CowStr::from(section.id.clone()));
    let one = |event| match event {
        Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
            Event::Start(Tag::Heading { level, id: ids.next(), classes, attrs })
        }
        other => other,
    };
    events.into_iter().skip(title.map_or(0, |at| at + 1)).map(one).collect()
}

/// A text inside of HTML, and inside of an attribute.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::Document;

    fn html(source: &str) -> String {
        Document::new("test", &format!("# Title\n\n{source}")).html
    }

    #[test]
    fn what_markdown_has_words_for() {
        let page =
            html("## A *b*\n\n1. one `<x>`\n2. two\n\n[to](api.md#tokens), [file](../examples), ![seen](x.png)\n");
        assert!(page.contains("<h2 id=\"a-b\">A <em>b</em></h2>"), "{page}");
        assert!(page.contains("<ol>\n<li>one <code>&lt;x&gt;</code></li>"), "{page}");
        assert!(page.contains("<a href=\"/docs/api#tokens\">to</a>, file, seen</p>"), "{page}");
        assert!(!page.contains("<h1") && !page.contains("<img"), "{page}");
    }

    #[test]
    fn no_html_of_a_document_gets_into_its_page() {
        let hostile = "a <b onclick=x>b</b> <script>c</script>\n\n<script>alert(1)</script>\n\n<!-- d -->\n\n[e](javascript:f) <javascript:g>\n\n```x\"><script>\n</code><script>\n```\n\n## <img src=x onerror=h>\n\n|<i>i</i>|`</td><script>`|\n|:-:|--:|\n|x|y|\n";
        let page = html(hostile);
        for forbidden in
            ["<script", "<img", "<b ", "<i>", "onclick", "javascript:f\"", "href=\"javascript", "style=", "<!--"]
        {
            assert!(!page.contains(forbidden), "{forbidden}: {page}");
        }
        assert!(page.contains("&lt;/code&gt;&lt;script&gt;"), "{page}");
    }

    #[test]
    fn tables_scroll_in_a_box_that_the_keyboard_reaches() {
        let page = html("## Of it\n\n| a | |\n|---|--:|\n| 1 | 2 |\n\n| | |\n|---|---|\n| 3 | 4 |\n");
        let first = "<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"Table in Of it\"><table><thead><tr><th>a</th><td class=\"num\"></td></tr></thead><tbody>\n<tr><td>1</td><td class=\"num\">2</td></tr>\n</tbody></table></div>";
        assert!(page.contains(first), "{page}");
        assert!(page.contains("<table><tbody><tr><td>3</td><td>4</td></tr>"), "a head that says nothing: {page}");
    }

    #[test]
    fn what_is_to_be_pasted_can_be_copied() {
        let page = html("```sh\necho \"a\" < b\n```\n\n```\nsaid\n```\n");
        let pasted = "<div class=\"code\"><pre tabindex=\"0\" role=\"group\" aria-label=\"Code in Title\"><code>echo &quot;a&quot; &lt; b\n</code></pre><button type=\"button\" class=\"copy sign\" data-copy=\"echo &quot;a&quot; &lt; b\"";
        assert!(page.contains(pasted), "{page}");
        assert!(page.contains("<code>said\n</code></pre></div>"), "{page}");
        assert_eq!(page.matches("<button").count(), 1, "{page}");
    }
}
