//! Reports of tests in the form of JUnit's XML, read from whoever may upload one.
//!
//! Nothing is expanded: a document type is refused, and with it every entity but the five of XML. Size, depth,
//! the number of cases and what is kept of each are bounded. What is no such report is refused with the reason and
//! where it stands. What is kept is text as it may be shown.
//!
//! The form has no standard. Read is what surefire, pytest, jest-junit, cargo-nextest and gotestsum write: a `testsuites`
//! or `testsuite`, suites within suites, `testcase` with `failure`, `error`, `skipped`, `system-out`, `system-err`.
//! What failed at first and passed when it was tried again (`flakyFailure`) has passed. Other elements are passed over.

#[cfg(test)]
mod tests;

use std::fmt;

use corpus_domain::{TestResult, plain, plain_line};
use quick_xml::events::attributes::Attribute;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

/// Cases of a report, at most.
pub const MAX_CASES: usize = 20_000;
/// How deep elements stand in each other, at most.
const MAX_DEPTH: usize = 32;
/// Attributes of an element, at most.
const MAX_ATTRIBUTES: usize = 64;
/// The longest name, in characters.
const MAX_NAME: usize = 300;
/// The longest message, in characters.
const MAX_MESSAGE: usize = 500;
/// What is kept of what is said of a failure, from its beginning, in bytes.
const MAX_DETAIL: usize = 8 * 1024;
/// What is kept of what a case wrote, from its end, in bytes.
const MAX_WRITTEN: usize = 4 * 1024;
/// What is kept of the outputs of one report, in bytes; the cases after that have their message.
const MAX_OUTPUTS: usize = 1024 * 1024;
/// The longest that a case may say it took, in seconds.
const MAX_SECONDS: f64 = 31_536_000.0;

/// A case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// The suite that it stands in.
    pub suite: String,
    /// Its name.
    pub name: String,
    /// Its class, module or file.
    pub class: Option<String>,
    /// What it came to.
    pub result: TestResult,
    /// How long it took.
    pub elapsed_ms: Option<i64>,
    /// Why it is not passed.
    pub message: Option<String>,
    /// What was said of its failure, and what it wrote.
    pub output: Option<String>,
}

impl Case {
    /// What it takes where it is kept, in bytes.
    pub fn bytes(&self) -> usize {
        let parts =
            [Some(&self.suite), Some(&self.name), self.class.as_ref(), self.message.as_ref(), self.output.as_ref()];
        parts.into_iter().flatten().map(String::len).sum()
    }
}

/// Why a text is no report, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// Why.
    pub why: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.why)
    }
}

/// The cases of a report, in its order.
pub fn read(text: &str) -> Result<Vec<Case>, Refusal> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    let mut report = Report::default();
    loop {
        let began = reader.buffer_position();
        let event = reader.read_event().map_err(|error| refusal(text, reader.error_position(), &error.to_string()))?;
        let is_end = matches!(event, Event::Eof);
        report.take(&event).map_err(|why| refusal(text, began, &why))?;
        if is_end {
            return Ok(report.cases);
        }
    }
}

fn refusal(text: &str, at: u64, why: &str) -> Refusal {
    let at = usize::try_from(at).unwrap_or(usize::MAX).min(text.len());
    let before = String::from_utf8_lossy(text.as_bytes().get(..at).unwrap_or_default());
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Refusal { line, column, why: plain_line(why, 300) }
}

/// An element that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    Suites,
    Suite,
    Case,
    /// What says that a case is not passed.
    Verdict,
    /// What a case wrote.
    Written,
    /// What is passed over, with all that is in it.
    Other,
}

#[derive(Default)]
struct Report {
    cases: Vec<Case>,
    open: Vec<Element>,
    suites: Vec<String>,
    case: Option<OpenCase>,
    had_root: bool,
    outputs: usize,
}

struct OpenCase {
    case: Case,
    /// What was said of its failure.
    detail: String,
    written: String,
    /// Whether the element that is open says the worst of it so far.
    counts: bool,
}

impl Report {
    fn take(&mut self, event: &Event<'_>) -> Result<(), String> {
        match event {
            Event::Start(start) => self.begin(start),
            Event::End(_) => {
                self.end();
                Ok(())
            }
            Event::Text(text) => self.text(&text.xml10_content()),
            Event::CData(text) => self.text(&text.xml10_content()),
            Event::GeneralRef(name) => {
                let one = match name.resolve_char_ref().map_err(|error| error.to_string())? {
                    Some(one) => one,
                    None => predefined(name).ok_or_else(|| format!("the entity &{}; is not read", &**name))?,
                };
                self.text(one.encode_utf8(&mut [0; 4]))
            }
            Event::Decl(declared) => match declared.encoding() {
                None => Ok(()),
                Some(Ok(one)) if ["utf-8", "utf8", "us-ascii"].iter().any(|known| one.eq_ignore_ascii_case(known)) => {
                    Ok(())
                }
                Some(_) => Err("the text is read as UTF-8, and says that it is something else".to_owned()),
            },
            Event::DocType(_) => Err("a document type is not read, nor what it declares".to_owned()),
            Event::Eof if !self.open.is_empty() => Err("the text ends before its elements do".to_owned()),
            Event::Eof if !self.had_root => Err("there is no testsuites or testsuite in it".to_owned()),
            Event::Eof | Event::Empty(_) | Event::Comment(_) | Event::PI(_) => Ok(()),
        }
    }

    fn begin(&mut self, start: &BytesStart<'_>) -> Result<(), String> {
        if self.open.len() >= MAX_DEPTH {
            return Err(format!("elements stand more than {MAX_DEPTH} deep in each other"));
        }
        let given = attributes(start)?;
        let name = start.name();
        let name: &str = name.as_ref();
        let inside = self.open.last().copied();
        let element = match (inside, name) {
            (None, _) if self.had_root => return Err("there is a second element beside the first".to_owned()),
            (None, "testsuites") => Element::Suites,
            (None | Some(Element::Suites | Element::Suite), "testsuite") => {
                let named = line(&given, "name").or_else(|| self.suites.last().cloned());
                self.suites.push(named.unwrap_or_default());
                Element::Suite
            }
            (None, _) => return Err(format!("a report begins with testsuites or testsuite, not with {name}")),
            (Some(Element::Suites | Element::Suite), "testcase") => {
                self.begin_case(&given)?;
                Element::Case
            }
            (_, "testsuites" | "testsuite" | "testcase") if inside != Some(Element::Other) => {
                return Err(format!("a {name} can't stand here"));
            }
            (Some(Element::Case), "failure") => self.verdict(TestResult::Failed, &given),
            (Some(Element::Case), "error") => self.verdict(TestResult::Errored, &given),
            (Some(Element::Case), "skipped") => self.verdict(TestResult::Skipped, &given),
            (Some(Element::Case), "system-out" | "system-err") => Element::Written,
            _ => Element::Other,
        };
        self.had_root = true;
        self.open.push(element);
        Ok(())
    }

    fn begin_case(&mut self, given: &[(String, String)]) -> Result<(), String> {
        if self.cases.len() >= MAX_CASES {
            return Err(format!("a report has {MAX_CASES} cases at most: upload the rest under another name"));
        }
        let elapsed_ms = value(given, "time").filter(|text| !text.trim().is_empty()).map(milliseconds).transpose()?;
        let case = Case {
            suite: self.suites.last().cloned().unwrap_or_default(),
            name: line(given, "name").ok_or("a testcase has no name")?,
            class: line(given, "classname").or_else(|| line(given, "class")).or_else(|| line(given, "file")),
            result: TestResult::Passed,
            elapsed_ms,
            message: None,
            output: None,
        };
        self.case = Some(OpenCase { case, detail: String::new(), written: String::new(), counts: false });
        Ok(())
    }

    fn verdict(&mut self, result: TestResult, given: &[(String, String)]) -> Element {
        if let Some(open) = &mut self.case {
            open.counts = result < open.case.result;
            if open.counts {
                open.case.result = result;
                open.detail.clear();
                let message = value(given, "message").filter(|text| !text.trim().is_empty());
                open.case.message =
                    message.or_else(|| value(given, "type")).and_then(|text| one_line(text, MAX_MESSAGE));
            }
        }
        Element::Verdict
    }

    fn text(&mut self, text: &str) -> Result<(), String> {
        match (self.open.last(), &mut self.case) {
            (None, _) if !text.trim().is_empty() => return Err("there is text outside of the report".to_owned()),
            (Some(Element::Verdict), Some(open)) if open.counts => {
                open.detail.push_str(head(text, MAX_DETAIL.saturating_sub(open.detail.len())));
            }
            (Some(Element::Written), Some(open)) => {
                open.written.push_str(text);
                let all = open.written.len();
                if all > 2 * MAX_WRITTEN {
                    open.written = tail(&open.written, MAX_WRITTEN).to_owned();
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self) {
        match self.open.pop() {
            Some(Element::Suite) => drop(self.suites.pop()),
            Some(Element::Case) => self.end_case(),
            _ => {}
        }
    }

    fn end_case(&mut self) {
        let Some(OpenCase { mut case, detail, written, .. }) = self.case.take() else { return };
        if case.message.is_none() && case.result != TestResult::Passed {
            case.message = detail.lines().find_map(|line| one_line(line, MAX_MESSAGE));
        }
        if matches!(case.result, TestResult::Failed | TestResult::Errored) && self.outputs < MAX_OUTPUTS {
            let (detail, written) = (plain(detail.trim()), plain(tail(&written, MAX_WRITTEN).trim()).into_owned());
            let parts = [detail.as_ref(), written.as_str()].into_iter().filter(|part| !part.is_empty());
            let output = parts.collect::<Vec<_>>().join("\n\n");
            self.outputs += output.len();
            case.output = Some(output).filter(|output| !output.is_empty());
        }
        self.cases.push(case);
    }
}

fn predefined(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "apos" => Some('\''),
        "quot" => Some('"'),
        _ => None,
    }
}

fn attributes(start: &BytesStart<'_>) -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    for attribute in start.attributes() {
        let attribute: Attribute<'_> = attribute.map_err(|error| error.to_string())?;
        if found.len() >= MAX_ATTRIBUTES {
            return Err(format!("an element has more than {MAX_ATTRIBUTES} attributes"));
        }
        let value = attribute.normalized_value(XmlVersion::Implicit1_0).map_err(|error| error.to_string())?;
        let name: &str = attribute.key.as_ref();
        found.push((name.to_owned(), value.into_owned()));
    }
    Ok(found)
}

fn value<'a>(given: &'a [(String, String)], name: &str) -> Option<&'a str> {
    given.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// A name, as it may be shown.
fn line(given: &[(String, String)], name: &str) -> Option<String> {
    value(given, name).and_then(|text| one_line(text, MAX_NAME))
}

fn one_line(text: &str, longest: usize) -> Option<String> {
    let line = plain_line(text.trim(), longest);
    Some(line).filter(|line| !line.trim().is_empty())
}

/// Seconds as runners write them; some put commas between thousands.
fn milliseconds(text: &str) -> Result<i64, String> {
    let wrong = || format!("time=\"{}\" is no number of seconds", plain_line(text, 40));
    let seconds: f64 = text.trim().replace(',', "").parse().map_err(|_| wrong())?;
    if !seconds.is_finite() {
        return Err(wrong());
    }
    // A clock that was set back in the middle.
    let bounded = seconds.clamp(0.0, MAX_SECONDS);
    #[expect(clippy::cast_possible_truncation, reason = "it is bounded")]
    Ok((bounded * 1000.0).round() as i64)
}

/// The beginning of a text, in bytes.
fn head(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default()
}

/// Its end.
fn tail(text: &str, most: usize) -> &str {
    text.get(text.ceil_char_boundary(text.len().saturating_sub(most))..).unwrap_or_default()
}
