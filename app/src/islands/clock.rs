//! Times that tick: ages grow while one looks, and exact times are local ones.

use leptos::prelude::*;

/// Keeps every `time[data-time]` of the page right.
#[island]
pub fn Clock() -> impl IntoView {
    #[cfg(target_arch = "wasm32")]
    {
        browser::tick();
        set_interval(browser::tick, std::time::Duration::from_secs(1));
    }
}

#[cfg(target_arch = "wasm32")]
pub use browser::tick;

#[cfg(target_arch = "wasm32")]
mod browser {
    use js_sys::Date;
    use web_sys::Element;

    use crate::age::{ago, silence, span};
    use crate::islands::{dom, instant};

    /// Brings all times up to date; called as soon as the server's times, which are UTC, get into the page.
    pub fn tick() {
        let now = instant::now();
        for time in dom::all("time[data-time]:not([data-done])") {
            show(&time, now);
        }
    }

    fn show(time: &Element, now: i64) -> Option<()> {
        let machine = time.get_attribute("datetime")?;
        let at = instant::parse(&machine)?;
        let date = Date::new(&machine.into());
        if time.get_attribute("data-local").is_none() {
            let _ = time.set_attribute("data-local", "");
            let _ = time.set_attribute("title", &exact(&date));
        }
        let seconds = now.saturating_sub(at) / 1_000;
        let text = match time.get_attribute("data-time")?.as_str() {
            "age" => ago(seconds),
            "since" => span(seconds),
            "silent" => silence(&clock(&date), seconds),
            kind => {
                let _ = time.set_attribute("data-done", "");
                if kind == "clock" { clock(&date) } else { exact(&date) }
            }
        };
        if time.text_content().as_deref() != Some(text.as_str()) {
            time.set_text_content(Some(&text));
        }
        Some(())
    }

    fn clock(date: &Date) -> String {
        format!("{:02}:{:02}:{:02}", date.get_hours(), date.get_minutes(), date.get_seconds())
    }

    /// The same order as the server's, so that columns still sort by eye; local.
    fn exact(date: &Date) -> String {
        format!("{}-{:02}-{:02} {}", date.get_full_year(), date.get_month() + 1, date.get_date(), clock(date))
    }
}
