//! What must hold for every static file, whoever adds one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::{FILES, asset};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("static")
}

/// Every file as it is written, by its path in `static`.
fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder()).expect("inside").to_str().expect("text");
            found.push((name.to_owned(), fs::read_to_string(&path).expect("text")));
        }
    }
    found
}

fn sources_ending(suffix: &str) -> Vec<(String, String)> {
    let found: Vec<_> = sources().into_iter().filter(|(name, _)| name.ends_with(suffix)).collect();
    assert!(!found.is_empty(), "there is no {suffix} file");
    found
}

/// The values between `before` and the next quote.
fn quoted<'a>(text: &'a str, before: &str) -> Vec<&'a str> {
    text.split(before).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn the_named_routes_are_served_with_their_types() {
    let types = [
        ("/", "text/html; charset=utf-8"),
        ("/console", "text/html; charset=utf-8"),
        ("/client.js", "text/javascript; charset=utf-8"),
        ("/widget.js", "text/javascript; charset=utf-8"),
        ("/base.css", "text/css; charset=utf-8"),
        ("/client.d.ts", "text/plain; charset=utf-8"),
    ];
    for (path, content_type) in types {
        assert_eq!(asset(path).map(|asset| asset.content_type), Some(content_type), "{path}");
    }
}

#[test]
fn nothing_else_is_served() {
    for path in [
        "",
        "index.html",
        "/nothing.js",
        "/client",
        "/client/link.js",
        "/../Cargo.toml",
        "//client.js",
    ] {
        assert_eq!(asset(path), None, "{path}");
    }
}

#[test]
fn etags_are_strong_and_differ_with_the_bytes() {
    let etags: BTreeSet<_> =
        ["/", "/console", "/client.js"].map(|path| asset(path).expect("served").etag).into();
    assert_eq!(etags.len(), 3);
    assert!(
        etags.iter().all(|etag| etag.len() == 66 && etag.starts_with('"') && etag.ends_with('"'))
    );
}

#[test]
fn every_file_that_a_page_names_is_served() {
    for (name, text) in sources_ending(".html") {
        for path in quoted(&text, "src=\"").into_iter().chain(quoted(&text, "href=\"")) {
            assert!(asset(path).is_some(), "{name} names {path}");
        }
    }
}

/// docs: `web.md` asks for 6 KB and 20 KB, of what is sent.
#[test]
fn client_and_widget_are_small() {
    for (path, limit) in [("/client.js", 6 * 1_024), ("/widget.js", 20 * 1_024)] {
        let size = asset(path).expect("served").gzip.len();
        assert!(size <= limit, "{path} takes {size} of {limit} bytes");
        assert!(size > limit / 4, "{path} is {size} bytes: is everything in it?");
    }
}

#[test]
fn what_is_served_needs_nothing_else() {
    for file in FILES.iter().filter(|file| file.name.ends_with(".js")) {
        let text = std::str::from_utf8(file.body).expect("text");
        assert!(
            !text.contains("import{") && !text.contains("import\"") && !text.contains("import("),
            "{}",
            file.name
        );
        assert!(
            file.gzip.starts_with(&[0x1f, 0x8b]) && file.gzip.len() < file.body.len(),
            "{}",
            file.name
        );
    }
}

#[test]
fn pages_hold_no_inline_script_and_no_inline_style() {
    for (name, text) in sources_ending(".html") {
        for tag in text.split("<script").skip(1) {
            let (attributes, rest) = tag.split_once('>').expect("a closed tag");
            assert!(
                attributes.contains("src=") && rest.starts_with("</script>"),
                "{name}: inline script"
            );
        }
        assert!(!text.contains("<style") && !text.contains(" style="), "{name}: inline style");
        let handler = text.split_whitespace().find(|word| {
            word.split_once('=').is_some_and(|(attribute, _)| attribute.starts_with("on"))
        });
        assert_eq!(handler, None, "{name}: inline handler");
    }
}

#[test]
fn scripts_never_turn_text_into_markup_or_code() {
    let forbidden = [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "DOMParser",
        "setHTMLUnsafe",
        "createContextualFragment",
        "eval(",
        "new Function",
        "cssText",
        "\"style\"",
    ];
    for (name, text) in sources_ending(".js") {
        for word in forbidden {
            assert!(!text.contains(word), "{name} uses {word}");
        }
    }
}

/// A console in a company's own network may well be on plain http.
#[test]
fn scripts_use_nothing_that_plain_http_lacks() {
    for (name, text) in sources_ending(".js") {
        for word in ["randomUUID(", "crypto.subtle", "navigator.clipboard", "caches.open"] {
            assert!(!text.contains(word), "{name} uses {word}");
        }
    }
}

#[test]
fn both_languages_have_the_same_words_with_the_same_places() {
    let with_words =
        sources_ending(".js").into_iter().filter(|(_, text)| text.contains("\ndefine({"));
    let mut count = 0;
    for (name, text) in with_words {
        let (english, chinese) = text.split_once("  \"zh-CN\": {").expect("a Chinese section");
        let english = words(english);
        assert!(!english.is_empty(), "{name}");
        assert_eq!(english, words(chinese), "{name}");
        count += english.len();
    }
    assert!(count > 60, "only {count} words were found");
}

/// Each key with the places (`{name}`) in its text.
fn words(section: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    section
        .lines()
        .take_while(|line| !line.starts_with("});"))
        .filter_map(|line| line.strip_prefix("    ")?.split_once(": \""))
        .map(|(key, text)| {
            let places = text.split('{').skip(1).filter_map(|rest| rest.split('}').next());
            (key, places.collect())
        })
        .collect()
}
