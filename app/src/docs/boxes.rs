//! Tables and code: what may be wider than the page.
//!
//! Each is in a box that scrolls by itself, so that the page does not, and that the keyboard reaches; its name
//! says what it is. A table whose head says nothing has none. Code that names its language is there to be
//! pasted and has a button that copies it, other code is what a program said.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, Tag, TagEnd};

use super::render::escaped;
use super::sections::Section;
use crate::components::SHEETS;

/// The events with tables and code in boxes.
pub fn boxed<'a>(events: Vec<Event<'a>>, sections: &[Section]) -> Vec<Event<'a>> {
    let mut boxes = Boxes { here: sections.first().map_or("", |first| &first.heading), ..Boxes::default() };
    for event in events {
        if let Event::Start(Tag::Heading { id: Some(id), .. }) = &event {
            boxes.here = sections.iter().find(|one| *one.id == **id).map_or("", |one| &one.heading);
        }
        boxes.take(event);
    }
    boxes.out
}

/// Where in the document one is, and what it is so far.
#[derive(Debug, Default)]
struct Boxes<'s, 'a> {
    /// The heading above.
    here: &'s str,
    /// The code that is being read, and whether it is there to be pasted.
    code: Option<(String, bool)>,
    columns: Vec<Alignment>,
    column: usize,
    /// The cells of the head that is being read.
    head: Option<Vec<Vec<Event<'a>>>>,
    out: Vec<Event<'a>>,
}

impl<'a> Boxes<'_, 'a> {
    fn take(&mut self, event: Event<'a>) {
        match (event, &mut self.code, &mut self.head) {
            (Event::Start(Tag::CodeBlock(kind)), ..) => {
                let pasted = matches!(kind, CodeBlockKind::Fenced(language) if !language.is_empty());
                self.code = Some((String::new(), pasted));
            }
            (Event::End(TagEnd::CodeBlock), ..) => self.end_code(),
            (Event::Text(text), Some((code, _)), _) => code.push_str(&text),
            (Event::Start(Tag::TableHead), ..) => self.head = Some(Vec::new()),
            (Event::End(TagEnd::TableHead), ..) => self.end_head(),
            (Event::Start(Tag::TableCell), _, Some(head)) => head.push(Vec::new()),
            (Event::End(TagEnd::TableCell), _, Some(_)) => {}
            (other, _, Some(head)) => {
                if let Some(cell) = head.last_mut() {
                    cell.push(other);
                }
            }
            (other, ..) => self.take_table(other),
        }
    }

    fn take_table(&mut self, event: Event<'a>) {
        match event {
            Event::Start(Tag::Table(columns)) => {
                self.columns = columns;
                self.html(format!("<div class=\"wide\"{}><table>", self.named("Table")));
            }
            Event::End(TagEnd::Table) => self.html("</tbody></table></div>\n"),
            Event::Start(Tag::TableRow) => {
                self.column = 0;
                self.html("<tr>");
            }
            Event::End(TagEnd::TableRow) => self.html("</tr>\n"),
            Event::Start(Tag::TableCell) => {
                self.html(format!("<td{}>", self.class_of(self.column)));
                self.column += 1;
            }
            Event::End(TagEnd::TableCell) => self.html("</td>"),
            other => self.out.push(other),
        }
    }

    fn end_head(&mut self) {
        let cells = self.head.take().unwrap_or_default();
        if cells.iter().all(Vec::is_empty) {
            return self.html("<tbody>");
        }
        self.html("<thead><tr>");
        for (column, cell) in cells.into_iter().enumerate() {
            // A heading that says nothing is no heading.
            let tag = if cell.is_empty() { "td" } else { "th" };
            self.html(format!("<{tag}{}>", self.class_of(column)));
            self.out.extend(cell);
            self.html(format!("</{tag}>"));
        }
        self.html("</tr></thead><tbody>\n");
    }

    fn class_of(&self, column: usize) -> &'static str {
        if self.columns.get(column) == Some(&Alignment::Right) { " class=\"num\"" } else { "" }
    }

    fn end_code(&mut self) {
        let (text, pasted) = self.code.take().unwrap_or_default();
        self.html(format!("<div class=\"code\"><pre{}><code>{}</code></pre>", self.named("Code"), escaped(&text)));
        if pasted {
            let value = escaped(text.trim_end());
            self.html(format!("<button type=\"button\" class=\"copy sign\" data-copy=\"{value}\" aria-label=\"Copy the code\">{SHEETS}</button>"));
        }
        self.html("</div>\n");
    }

    /// What makes a box reachable and says what it is.
    fn named(&self, what: &str) -> String {
        format!(" tabindex=\"0\" role=\"group\" aria-label=\"{what} in {}\"", escaped(self.here))
    }

    fn html(&mut self, text: impl Into<String>) {
        self.out.push(Event::Html(text.into().into()));
    }
}
