//! Detects the media type of a file from its first bytes, for the types that media samples use.

/// How many leading bytes [`sniff`] needs.
pub(crate) const SNIFF_BYTES: usize = 12;

/// Brands of the MP4 container that are not MP4 video: images, audio, `QuickTime`.
const UNSUPPORTED_BRANDS: [&[u8]; 9] =
    [b"avif", b"avis", b"heic", b"heix", b"mif1", b"msf1", b"M4A ", b"M4B ", b"qt  "];

/// The media type that the first bytes of a file indicate.
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
    let brand = head.get(8..SNIFF_BYTES).filter(|_| &head[4..8] == b"ftyp")?;
    if brand.starts_with(b"3gp") || brand.starts_with(b"3g2") {
        return Some("video/3gpp");
    }
    (!UNSUPPORTED_BRANDS.contains(&brand)).then_some("video/mp4")
}

/// Whether the sniffed type rules out the declared one. A declared type that cannot be sniffed is
/// accepted.
pub(crate) fn contradicts(sniffed: Option<&str>, declared: &str) -> bool {
    // MP4 and 3GPP share a container, and encoders often write the other's brand.
    let compatible: &[&str] = match declared {
        "image/jpeg" | "image/jpg" => &["image/jpeg"],
        "image/png" => &["image/png"],
        "image/gif" => &["image/gif"],
        "application/pdf" => &["application/pdf"],
        "video/mp4" | "video/3gpp" => &["video/mp4", "video/3gpp"],
        _ => return false,
    };
    !sniffed.is_some_and(|sniffed| compatible.contains(&sniffed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_sample_types_are_detected_from_the_first_bytes() {
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
    fn a_sniffed_type_contradicts_an_incompatible_declared_type() {
        for (sniffed, declared, expected) in [
            (Some("image/png"), "image/png", false),
            (Some("image/jpeg"), "image/jpg", false),
            (Some("video/3gpp"), "video/mp4", false),
            (Some("image/png"), "image/jpeg", true),
            (Some("image/png"), "video/mp4", true),
            (None, "application/pdf", true),
            (None, "text/plain", false),
        ] {
            assert_eq!(contradicts(sniffed, declared), expected, "{sniffed:?} {declared}");
        }
    }
}
