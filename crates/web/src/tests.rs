//! What must hold for every static file, whoever adds one.

use std::collections::{BTreeMap, BTreeSet};

use super::{Static, asset};

fn files() -> Vec<(String, String)> {
    Static::iter()
        .map(|name| {
            let served = asset(&format!("/{name}")).expect("a content type for every file");
            let text = String::from_utf8(served.body.into_owned()).expect("text");
            (name.into_owned(), text)
        })
        .collect()
}

fn files_ending(suffix: &str) -> Vec<(String, String)> {
    let found: Vec<_> = files().into_iter().filter(|(name, _)| name.ends_with(suffix)).collect();
    assert!(!found.is_empty(), "no {suffix} file is embedded");
    found
}

/// The values between `before` and the next quote.
fn quoted<'a>(text: &'a str, before: &str) -> Vec<&'a str> {
    text.split(before).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// `./x.js` as imported by `importer`, as a path of the site.
fn resolved(importer: &str, relative: &str) -> String {
    let mut parts: Vec<&str> = importer.split('/').collect();
    parts.pop();
    for step in relative.split('/') {
        match step {
            "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    format!("/{}", parts.join("/"))
}

#[test]
fn the_named_routes_are_served_with_their_types() {
    let types = [
        ("/", "text/html; charset=utf-8"),
        ("/console", "text/html; charset=utf-8"),
        ("/client.js", "text/javascript; charset=utf-8"),
        ("/widget.js", "text/javascript; charset=utf-8"),
        ("/demo.css", "text/css; charset=utf-8"),
    ];
    for (path, content_type) in types {
        assert_eq!(asset(path).map(|asset| asset.content_type), Some(content_type), "{path}");
    }
}

#[test]
fn nothing_else_is_served() {
    for path in
        ["", "index.html", "/nothing.js", "/client", "/client/", "/../Cargo.toml", "//client.js"]
    {
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
fn every_file_that_a_page_or_module_names_exists() {
    for (name, text) in files_ending(".html") {
        for path in quoted(&text, "src=\"").into_iter().chain(quoted(&text, "href=\"")) {
            assert!(asset(path).is_some(), "{name} names {path}");
        }
    }
    for (name, text) in files_ending(".js") {
        let imports =
            text.lines().filter(|line| line.starts_with("import ") || line.starts_with("export "));
        for line in imports {
            let named = quoted(line, "from \"").into_iter().chain(quoted(line, "import \""));
            for relative in named {
                assert!(asset(&resolved(&name, relative)).is_some(), "{name} imports {relative}");
            }
        }
        for relative in quoted(&text, "new URL(\"./") {
            assert!(asset(&resolved(&name, relative)).is_some(), "{name} links {relative}");
        }
    }
}

#[test]
fn pages_hold_no_inline_script_and_no_inline_style() {
    for (name, text) in files_ending(".html") {
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
    for (name, text) in files_ending(".js") {
        for word in forbidden {
            assert!(!text.contains(word), "{name} uses {word}");
        }
    }
}

#[test]
fn both_languages_have_the_same_words_with_the_same_places() {
    let text = files().into_iter().find(|(name, _)| name == "i18n.js").expect("i18n.js").1;
    let (english, chinese) = text.split_once("  \"zh-CN\": {").expect("a Chinese section");
    let english = words(english);
    assert!(english.len() > 50);
    assert_eq!(english, words(chinese));
}

/// Each key with the places (`{name}`) in its text.
fn words(section: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    section
        .lines()
        .take_while(|line| !line.starts_with("};"))
        .filter_map(|line| line.strip_prefix("    ")?.split_once(": \""))
        .map(|(key, text)| {
            let places = text.split('{').skip(1).filter_map(|rest| rest.split('}').next());
            (key, places.collect())
        })
        .collect()
}
