//! Visitors of a simulated host: each name of a guest that runs has a few a minute, the same whenever it is asked.

use chrono::{DateTime, Utc};
use corpus_protocol::{
    AccessLine, AddressDetail, Latency, Millis, RoutedName, TRAFFIC_AT_ONCE, TrafficError, TrafficMinute,
    TrafficReading,
};

const A_MINUTE: Millis = 60_000;
/// It remembers no more: a controller reads each minute.
const MINUTES: Millis = 5;

/// What was counted for these names, in whole minutes only.
pub(crate) fn reading(names: &[RoutedName], after_ms: Option<Millis>, now: DateTime<Utc>) -> TrafficReading {
    let now = millis(now);
    let ended = now - now % A_MINUTE;
    let mut reading = TrafficReading::default();
    let names = names.get(..TRAFFIC_AT_ONCE).unwrap_or(names);
    for back in (1..=MINUTES).rev() {
        let at = ended.saturating_sub(back * A_MINUTE);
        if after_ms.is_some_and(|after| at <= after) {
            continue;
        }
        if reading.minutes.len() + names.len() > TRAFFIC_AT_ONCE {
            reading.more = true;
            break;
        }
        reading.minutes.extend(names.iter().map(|name| minute(name, at)));
    }
    reading
}

/// The longer a name, the more visitors it has; one of them finds it broken.
fn minute(name: &RoutedName, at_ms: Millis) -> TrafficMinute {
    let visitors = u64::try_from(name.name.as_str().len()).unwrap_or_default();
    let mut latency = Latency::default();
    (0..=visitors).for_each(|nth| latency.add(5 * nth));
    let error = TrafficError {
        at_ms: at_ms + 1_000,
        method: "GET".to_owned(),
        path: "/broken".to_owned(),
        status: 503,
        took_ms: 5 * visitors,
        cause: "SC".to_owned(),
    };
    TrafficMinute {
        requests: visitors + 1,
        statuses: [0, visitors, 0, 0, 1],
        bytes_in: 500 * visitors,
        bytes_out: 20_000 * visitors,
        latency,
        errors: vec![error],
        ..TrafficMinute::of(name.clone(), at_ms)
    }
}

/// What who follows these names is told at once: a visitor of each.
pub(crate) fn lines(names: &[RoutedName], addresses: AddressDetail, now: DateTime<Utc>) -> Vec<AccessLine> {
    let from = match addresses {
        AddressDetail::Cut => Some("192.0.2.0/24".to_owned()),
        AddressDetail::Whole => Some("192.0.2.77".to_owned()),
        AddressDetail::None => None,
    };
    let line = |name: &RoutedName| AccessLine {
        at_ms: millis(now),
        name: name.clone(),
        method: "GET".to_owned(),
        path: "/".to_owned(),
        status: 200,
        bytes_out: 20_000,
        took_ms: 5,
        from: from.clone(),
        cause: "--".to_owned(),
    };
    names.iter().map(line).collect()
}

fn millis(at: DateTime<Utc>) -> Millis {
    at.timestamp_millis().try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_is_told_once() {
        let names = [RoutedName { name: "www.example.org".parse().unwrap(), wildcard: false }];
        let now = DateTime::from_timestamp(1_700_000_099, 0).unwrap();
        let first = reading(&names, None, now);
        let times: Vec<_> = first.minutes.iter().map(|one| one.at_ms).collect();
        assert_eq!((times.len(), times[4]), (5, 1_699_999_980_000));
        assert_eq!(reading(&names, Some(times[3]), now).minutes, first.minutes[4..]);
        assert_eq!(reading(&names, Some(times[4]), now), TrafficReading::default());
        let one = &first.minutes[0];
        assert_eq!((one.requests, one.latency.requests(), one.statuses.iter().sum::<u64>()), (16, 16, 16));
    }
}
