//! Finds links to URL shorteners and to WhatsApp in a string.

use std::ops::Range;

use super::{characters, limited};
use crate::violation::{Span, TextWarning, WarningRule, truncated};

/// Hosts of URL shorteners.
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

/// Hosts that lead back to WhatsApp.
const WHATSAPP_HOSTS: &[&str] = &["api.whatsapp.com", "chat.whatsapp.com", "wa.me"];

/// A link that WhatsApp rejects.
struct RejectedLink {
    range: Range<usize>,
    reason: &'static str,
    hint: &'static str,
}

/// Warns of the links in a string that WhatsApp rejects.
pub(super) fn check(text: &str) -> Vec<TextWarning> {
    limited(rejected_links(text), |RejectedLink { range, reason, hint }| {
        let message = format!("`{}` {reason}", truncated(&text[range.clone()]));
        TextWarning::new(WarningRule::LinkShortener, message, hint).at(Span::of(text, range))
    })
}

/// Whether a URL leads back to WhatsApp.
pub(crate) fn is_whatsapp_url(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = host.split(['/', '?', '#', ':', '\\']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default().trim_end_matches('.');
    // A placeholder may extend the host.
    let fixed = host.split("{{").next().unwrap_or_default();
    let is_or_is_below = |host: &str, known: &str| {
        let rest = host.len().checked_sub(known.len()).and_then(|at| host.split_at_checked(at));
        rest.is_some_and(|(sub, end)| {
            end.eq_ignore_ascii_case(known) && (sub.is_empty() || sub.ends_with('.'))
        })
    };
    let is_below = |known: &&str| is_or_is_below(host, known) || is_or_is_below(fixed, known);
    WHATSAPP_HOSTS.iter().any(is_below)
}

fn rejected_links(text: &str) -> impl Iterator<Item = RejectedLink> {
    // All characters of a host are ASCII, so bytes can be compared.
    let is_host_byte = |it: &u8| it.is_ascii_alphanumeric() || matches!(it, b'.' | b'-');
    let bytes = text.as_bytes();
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let dot = from + text[from..].find('.')?;
            let before = bytes[from..dot].iter().rposition(|it| !is_host_byte(it));
            let start = before.map_or(from, |before| from + before + 1);
            let length = bytes[dot..].iter().position(|it| !is_host_byte(it));
            let end = length.map_or(text.len(), |length| dot + length);
            from = end;
            let Some(link_start) = link_start(text, start..end) else { continue };
            if let Some((reason, hint)) = rejection(&text[start..end]) {
                from = link_end(text, end);
                return Some(RejectedLink { range: link_start..from, reason, hint });
            }
        }
    })
}

/// The reason and hint if WhatsApp rejects links to a host.
fn rejection(host: &str) -> Option<(&'static str, &'static str)> {
    let name = host.trim_end_matches('.');
    let bare = match name.get(..4) {
        Some(www) if www.eq_ignore_ascii_case("www.") => &name[4..],
        _ => name,
    };
    let is_one_of = |hosts: &[&str]| hosts.iter().any(|known| known.eq_ignore_ascii_case(bare));
    if is_one_of(SHORTENERS) {
        let hint = "write the full URL: WhatsApp rejects shortened links";
        return Some(("is a shortened link", hint));
    }
    let hint = "remove it: WhatsApp rejects links to WhatsApp";
    is_one_of(WHATSAPP_HOSTS).then_some(("leads back to WhatsApp", hint))
}

/// The start of the link with the given host. The host must follow a scheme, or start a word and
/// be followed by a path.
fn link_start(text: &str, host: Range<usize>) -> Option<usize> {
    let (before, after) = (&text[..host.start], &text[host.end..]);
    if after.starts_with('@') {
        return None;
    }
    if let Some(rest) = before.strip_suffix("://") {
        let scheme = rest.trim_end_matches(|it: char| it.is_ascii_alphabetic());
        return Some(scheme.len());
    }
    let is_word_char = |it: char| it.is_alphanumeric() || matches!(it, '/' | '@' | '_');
    (after.starts_with('/') && !before.ends_with(is_word_char)).then_some(host.start)
}

/// The end of a link: before whitespace, quotes, brackets and trailing punctuation.
fn link_end(text: &str, from: usize) -> usize {
    let is_end = |it: char| characters::is_blank(it) || matches!(it, '"' | '<' | '>' | '«' | '»');
    let end = text[from..].find(is_end).map_or(text.len(), |at| from + at);
    from + text[from..end].trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '\'', '*']).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        rejected_links(text).map(|link| &text[link.range]).collect()
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
        assert_eq!(check("bit.ly/a")[0].message, "`bit.ly/a` is a shortened link");
    }

    #[test]
    fn links_to_whatsapp_are_recognised_by_their_host() {
        for url in [
            "https://wa.me/1",
            "http://WA.ME",
            "https://chat.whatsapp.com/x",
            "https://api.whatsapp.com:443/send",
            "https://wa.me{{1}}",
            "https://{{1}}.wa.me/",
        ] {
            assert!(is_whatsapp_url(url), "{url}");
        }
        for url in [
            "https://shop.example/wa.me",
            "https://mywa.me/",
            "https://wa.me.example",
            "https://wa.link/x",
            "https://faq.whatsapp.com/x",
            "https://www.whatsapp.com/legal",
            "",
            "é",
        ] {
            assert!(!is_whatsapp_url(url), "{url}");
        }
    }

    #[test]
    fn similar_hosts_and_other_texts_are_accepted() {
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
