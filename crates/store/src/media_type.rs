//! Which type a file has, by its first bytes: only the types that media samples come in.

/// How many bytes are enough to tell.
pub(crate) const ENOUGH: usize = 12;

/// Files in the same box as MP4 that are something else: pictures, sound, `QuickTime`.
const OTHERS_IN_THE_BOX: [&[u8]; 9] =
    [b"avif", b"avis", b"heic", b"heix", b"mif1", b"msf1", b"M4A ", b"M4B ", b"qt  "];

/// The type that these first bytes show.
pub(crate) fn sniff(head: &[u8]) -> Option<&'static str> {
    if head.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Some("image/png");
    }
    if head.starts_with(b"\xff\xd8\xff") {
        return Some("image/jpeg");
    }
    if head.starts_with(b"GIF87a") || head.starts_with(b"GIF89a") {
        return Some("image/gif");
    }
    if head.starts_with(b"%PDF-") {
        return Some("application/pdf");
    }
    let brand = head.get(8..ENOUGH).filter(|_| &head[4..8] == b"ftyp")?;
    if brand.starts_with(b"3gp") || brand.starts_with(b"3g2") {
        return Some("video/3gpp");
    }
    (!OTHERS_IN_THE_BOX.contains(&brand)).then_some("video/mp4")
}

/// Whether a file whose first bytes show that cannot be what its sender says. Of a type that no
/// first bytes show, anything is believed.
pub(crate) fn contradicts(shown: Option<&str>, announced: &str) -> bool {
    // Both videos come in the same box, and programs are not particular about its brand.
    let like: &[&str] = match announced {
        "image/jpeg" | "image/jpg" => &["image/jpeg"],
        "image/png" => &["image/png"],
        "image/gif" => &["image/gif"],
        "application/pdf" => &["application/pdf"],
        "video/mp4" | "video/3gpp" => &["video/mp4", "video/3gpp"],
        _ => return false,
    };
    !shown.is_some_and(|shown| like.contains(&shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_types_of_media_samples_are_told_by_their_first_bytes() {
        for (head, expected) in [
            (&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], Some("image/png")),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", Some("image/jpeg")),
            (b"%PDF-1.7\n", Some("application/pdf")),
            (b"\0\0\0\x18ftypmp42\0\0\0\0", Some("video/mp4")),
            (b"\0\0\0\x20ftypisom", Some("video/mp4")),
            (b"\0\0\0\x18ftyp3gp5", Some("video/3gpp")),
            (b"\0\0\0\x18ftyp3g2a", Some("video/3gpp")),
            (b"GIF89a\x01\0\x01\0", Some("image/gif")),
            (b"\0\0\0\x20ftypheic", None),
            (b"\0\0\0\x14ftypqt  ", None),
            (b"\0\0\0\x20ftyp", None),
            (b"<!doctype html>", None),
            (b"\x89PNG", None),
            (b"", None),
        ] {
            assert_eq!(sniff(head), expected, "{head:?}");
        }
    }

    #[test]
    fn bytes_contradict_what_they_cannot_be() {
        for (shown, announced, expected) in [
            (Some("image/png"), "image/png", false),
            (Some("image/jpeg"), "image/jpg", false),
            (Some("video/3gpp"), "video/mp4", false),
            (Some("image/png"), "image/jpeg", true),
            (Some("image/png"), "video/mp4", true),
            (None, "application/pdf", true),
            (None, "text/plain", false),
        ] {
            assert_eq!(contradicts(shown, announced), expected, "{shown:?} {announced}");
        }
    }
}
