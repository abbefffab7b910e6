//! Plots: an SVG without any script or style of its own. Who can't see it gets its title, its description, and the same
//! numbers as a table.

use std::fmt::Write;

use leptos::prelude::*;

/// The height of a plot in its own units; what is drawn keeps 4 of them free.
pub const HEIGHT: u64 = 100;
/// From one bar to the next.
pub const STEP: usize = 24;

/// How high a value is; what is not nothing can be seen.
pub fn high(value: u64, most: u64) -> u64 {
    let high = u128::from(value) * u128::from(HEIGHT - 4) / u128::from(most.max(1));
    let high = u64::try_from(high).unwrap_or(HEIGHT);
    if value > 0 && high < 2 { 2 } else { high }
}

/// A bar, or a part of one.
pub fn bar(class: &'static str, at: usize, y: u64, height: u64) -> AnyView {
    (height > 0)
        .then(|| {
            view! { <rect class=class x=(at * STEP + 3).to_string() y=y.to_string() width=(STEP - 6).to_string() height=height.to_string() rx="2"></rect> }
        })
        .into_any()
}

/// Bars, each of several parts that stand on each other, the first at the bottom. A part that is not nothing can be
/// seen, and a bar is never higher than the plot.
pub fn stacks<const PARTS: usize>(classes: [&'static str; PARTS], bars: &[[u64; PARTS]]) -> AnyView {
    let sum = |parts: &[u64; PARTS]| parts.iter().fold(0_u64, |all, part| all.saturating_add(*part));
    let most = bars.iter().map(sum).max().unwrap_or(1).max(1);
    let bars = bars.iter().enumerate().map(|(at, parts)| {
        let mut top = HEIGHT;
        let part = |(class, value): (&'static str, &u64)| {
            let height = high(*value, most).min(top);
            top -= height;
            bar(class, at, top, height)
        };
        classes.into_iter().zip(parts).map(part).collect_view()
    });
    bars.collect_view().into_any()
}

/// A line over the bars' places, with gaps where there is no value: each value is as wide as a bar's place.
pub fn line(class: &'static str, values: &[Option<u64>], most: u64) -> AnyView {
    let (mut path, mut goes_on) = (String::new(), false);
    for (at, value) in values.iter().enumerate() {
        if let Some(value) = value {
            let y = HEIGHT - high(*value, most.max(1)).min(HEIGHT);
            let to = if goes_on { 'L' } else { 'M' };
            let _ = write!(path, "{to}{} {y}h{STEP}", at * STEP);
        }
        goes_on = value.is_some();
    }
    view! { <path class=class d=path></path> }.into_any()
}

/// The whole of it.
pub fn figure(
    id: &'static str,
    title: &'static str,
    said: &str,
    bars: usize,
    drawn: AnyView,
    table: AnyView,
) -> AnyView {
    let box_ = format!("0 0 {} {HEIGHT}", (bars * STEP).max(STEP * 13));
    let (title_id, said_id) = (format!("plot-{id}-title"), format!("plot-{id}-desc"));
    let base = HEIGHT.to_string();
    view! {
        <figure class="plot">
            <figcaption><span class="strong">{title}</span>" "<span class="quiet">{said.to_owned()}</span></figcaption>
            <svg viewBox=box_ preserveAspectRatio="none" role="img" aria-labelledby=format!("{title_id} {said_id}")>
                <title id=title_id.clone()>{title}</title>
                <desc id=said_id.clone()>{said.to_owned()}</desc>
                {drawn}
                <line class="base" x1="0" x2="10000" y1=base.clone() y2=base.clone()></line>
            </svg>
            <details class="more"><summary>"As a table"</summary>{table}</details>
        </figure>
    }
    .into_any()
}

/// The numbers behind it.
pub fn table(heads: &[&'static str], rows: AnyView) -> AnyView {
    let heads = heads.iter().map(|head| view! { <th>{*head}</th> }).collect_view();
    view! { <table class="compact"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table> }.into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_higher_than_the_plot_and_the_smallest_is_seen() {
        assert_eq!((high(0, 9), high(1, 1_000_000), high(9, 9)), (0, 2, 96));
        assert_eq!((high(u64::MAX, u64::MAX), high(5, 0)), (96, 480));
    }
}
