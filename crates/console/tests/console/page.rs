//! What of a visitor's page may be relayed.

use kefu_console::{InvalidPage, PageView};

fn page(url: &str, title: &str, language: &str) -> Result<PageView, InvalidPage> {
    PageView::new(url.to_owned(), title.to_owned(), language.to_owned())
}

#[test]
fn only_addresses_of_the_web_are_relayed() {
    let longest = format!("https://{}", "退".repeat(1_016));
    for good in ["http://a", "https://shop.test/?q=退款#x", "HtTpS://a.b", &longest] {
        assert!(page(good, "", "").is_ok(), "{good}");
    }
    let longer = format!("{longest}x");
    for bad in [
        "",
        "https://",
        "http:/a",
        "//a.b",
        "ftp://a.b",
        "javascript:alert(1)//http://",
        " https://a.b",
        "https://a.b/\n",
        "退http://a",
        &longer,
    ] {
        assert_eq!(page(bad, "", ""), Err(InvalidPage::Url), "{bad:?}");
    }
}

#[test]
fn title_and_language_are_bounded() {
    assert!(page("http://a", &"题".repeat(256), &"x".repeat(35)).is_ok());
    assert_eq!(page("http://a", &"题".repeat(257), ""), Err(InvalidPage::Title));
    assert_eq!(page("http://a", "a\u{7}", ""), Err(InvalidPage::Title));
    assert_eq!(page("http://a", "", &"x".repeat(36)), Err(InvalidPage::Language));
}
