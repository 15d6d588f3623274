//! Addresses of link shorteners, wherever they stand in a string.

use std::ops::Range;

use super::{characters, tell};
use crate::violation::{Span, shortened};
use crate::violation::{TextWarning, WarningRule};

/// Hosts whose addresses tell nobody where they lead.
const SHORTENERS: &[&str] = &[
    "adf.ly",
    "amzn.to",
    "bit.ly",
    "bitly.com",
    "bl.ink",
    "buff.ly",
    "cutt.ly",
    "fb.me",
    "goo.gl",
    "is.gd",
    "lnkd.in",
    "ow.ly",
    "rb.gy",
    "rebrand.ly",
    "s.id",
    "shorturl.at",
    "t.co",
    "t.ly",
    "tiny.cc",
    "tinyurl.com",
    "v.gd",
    "wa.link",
];

/// Hosts that lead back into WhatsApp.
const WHATSAPP: &[&str] = &["api.whatsapp.com", "chat.whatsapp.com", "wa.me"];

/// An address that is better not there.
struct Link {
    place: Range<usize>,
    verdict: &'static str,
    hint: &'static str,
}

/// The addresses in a string that WhatsApp will not take.
pub(super) fn look(text: &str) -> Vec<TextWarning> {
    tell(addresses(text), |Link { place, verdict, hint }| {
        let message = format!("`{}` {verdict}", shortened(&text[place.clone()]));
        TextWarning::new(WarningRule::LinkShortener, message, hint).at(Span::of(text, place))
    })
}

/// Whether an address leads back into WhatsApp.
pub(crate) fn leads_into_whatsapp(address: &str) -> bool {
    let host = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = host.split(['/', '?', '#', ':', '\\']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default().trim_end_matches('.');
    let is_below = |known: &&str| {
        let rest = host.len().checked_sub(known.len()).and_then(|at| host.split_at_checked(at));
        rest.is_some_and(|(sub, end)| {
            end.eq_ignore_ascii_case(known) && (sub.is_empty() || sub.ends_with('.'))
        })
    };
    WHATSAPP.iter().any(is_below)
}

fn addresses(text: &str) -> impl Iterator<Item = Link> {
    let is_host = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-');
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let start = from + text[from..].find(is_host)?;
            let end = text[start..].find(|it| !is_host(it)).map_or(text.len(), |at| start + at);
            from = end;
            let Some((verdict, hint)) = judge(text, start..end) else { continue };
            if let Some(begin) = begin(text, start..end) {
                from = address_end(text, end);
                return Some(Link { place: begin..from, verdict, hint });
            }
        }
    })
}

/// What there is to say about a host, if it is one of ours.
fn judge(text: &str, host: Range<usize>) -> Option<(&'static str, &'static str)> {
    let name = text[host].trim_end_matches('.');
    let bare = match name.get(..4) {
        Some(www) if www.eq_ignore_ascii_case("www.") => &name[4..],
        _ => name,
    };
    let is_one_of = |hosts: &[&str]| hosts.iter().any(|known| known.eq_ignore_ascii_case(bare));
    if is_one_of(SHORTENERS) {
        let hint = "write the address it leads to: WhatsApp rejects shortened links";
        return Some(("is a shortened link", hint));
    }
    let hint = "leave it out: WhatsApp refuses links to itself";
    is_one_of(WHATSAPP).then_some(("leads back into WhatsApp", hint))
}

/// Where the address begins whose host stands at `host`: behind `http://`, or at the beginning
/// of a word and with a path.
fn begin(text: &str, host: Range<usize>) -> Option<usize> {
    let (before, behind) = (&text[..host.start], &text[host.end..]);
    if behind.starts_with('@') {
        return None;
    }
    if let Some(rest) = before.strip_suffix("://") {
        let scheme = rest.trim_end_matches(|it: char| it.is_ascii_alphabetic());
        return Some(scheme.len());
    }
    let inside = |it: char| it.is_alphanumeric() || matches!(it, '/' | '@' | '_');
    (!before.ends_with(inside) && behind.starts_with('/')).then_some(host.start)
}

/// Addresses end at white space, quotes and brackets; what closes the sentence is not theirs.
fn address_end(text: &str, from: usize) -> usize {
    let outside = |it: char| characters::is_space(it) || matches!(it, '"' | '<' | '>' | '«' | '»');
    let end = text[from..].find(outside).map_or(text.len(), |at| from + at);
    from + text[from..end].trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '\'', '*']).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        addresses(text).map(|link| &text[link.place]).collect()
    }

    #[test]
    fn shortened_links_are_found_with_and_without_a_scheme() {
        for (text, link) in [
            ("https://bit.ly/x", "https://bit.ly/x"),
            ("See (bit.ly/x).", "bit.ly/x"),
            ("é HTTP://WWW.TinyURL.com/a?b=c, now", "HTTP://WWW.TinyURL.com/a?b=c"),
            ("https://t.co", "https://t.co"),
            ("https://wa.me/{{1}}", "https://wa.me/{{1}}"),
            ("*ow.ly/abc*", "ow.ly/abc"),
            ("bit.ly/x\u{200b}y", "bit.ly/x"),
        ] {
            assert_eq!(found(text), [link], "{text}");
        }
        assert_eq!(found("bit.ly/a bit.ly/b"), ["bit.ly/a", "bit.ly/b"]);
    }

    #[test]
    fn addresses_of_whatsapp_are_told_by_their_host() {
        for address in [
            "https://wa.me/1",
            "http://WA.ME",
            "https://chat.whatsapp.com/x",
            "https://api.whatsapp.com:443/send",
        ] {
            assert!(leads_into_whatsapp(address), "{address}");
        }
        for address in [
            "https://shop.example/wa.me",
            "https://mywa.me/",
            "https://wa.me.example",
            "https://wa.link/x",
            "https://faq.whatsapp.com/x",
            "https://www.whatsapp.com/legal",
            "",
            "é",
        ] {
            assert!(!leads_into_whatsapp(address), "{address}");
        }
    }

    #[test]
    fn what_only_looks_like_one_is_left_alone() {
        for text in [
            "https://bit.ly.example/x",
            "https://orbit.ly/x",
            "https://shop.example/t.co/x",
            "habit.ly/x",
            "ébit.ly/x",
            "me@t.co/x",
            "https://t.co@shop.example/",
            "We left bit.ly for good.",
            "t.co",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }
}
