//! Less to send: names of the bundle's own get short, and what only people need goes.
//!
//! Within a unit (a method, a function) a name is renamed everywhere or nowhere, so no scope has to be
//! known: what was one name stays one name, and what was another stays another.

use std::collections::{BTreeMap, BTreeSet};

use super::scope::{Role, declared, is_keyword, pattern, roles};
use super::token::{Kind, Token};

/// Gives every name that the bundle declares, every `#private` one and every `_internal` one a short name;
/// those in `kept` stay.
pub(crate) fn shorten(tokens: &[Token], kept: &BTreeSet<String>) -> Vec<Token> {
    let roles = roles(tokens);
    let units = units(tokens);
    let top = top_level(tokens, &roles);
    let internal: Vec<&str> =
        words(tokens).map(|(_, name)| name).filter(|name| is_internal(name)).collect();
    let variables: Vec<(usize, &str)> = words(tokens)
        .filter(|(at, name)| roles[*at] != Role::Other && !is_internal(name))
        .collect();
    let is_top = |name: &str| top.contains(name) && !kept.contains(name);
    let mut locals: Vec<Vec<&str>> = Vec::new();
    // Names that stay, of the platform and of the outside, are in sight everywhere: no short name may hide one.
    let mut taken = kept.clone();
    for unit in 0..=units.last().copied().unwrap_or_default() {
        let range =
            units.partition_point(|one| *one < unit)..units.partition_point(|one| *one <= unit);
        let own = declared(&tokens[range.clone()], &roles[range.clone()]);
        let within = variables.iter().filter(|(at, _)| range.contains(at)).map(|(_, name)| *name);
        let (of_unit, rest): (Vec<&str>, Vec<&str>) =
            within.partition(|name| own.contains(*name) && !top.contains(*name));
        taken.extend(rest.into_iter().filter(|name| !is_top(name)).map(str::to_owned));
        locals.push(of_unit);
    }
    let tops: Vec<&str> =
        variables.iter().map(|(_, name)| *name).filter(|name| is_top(name)).collect();
    let mut names = Names { short: BTreeMap::new(), taken };
    names.assign(None, &internal);
    names.assign(None, &tops);
    for (unit, locals) in locals.iter().enumerate() {
        names.assign(Some(unit), locals);
    }
    let token_of = |(at, token): (usize, &Token)| {
        let name = token.text.as_str();
        let new = names.of(units[at], name).filter(|_| token.kind == Kind::Word);
        let text = match (new, roles[at]) {
            (Some(new), Role::Shorthand) if !is_internal(name) => format!("{name}:{new}"),
            (Some(new), Role::Other) if is_internal(name) => new.clone(),
            (Some(new), Role::Variable | Role::Shorthand) => new.clone(),
            (_, Role::Other | Role::Variable | Role::Shorthand) => token.text.clone(),
        };
        Token { text, ..token.clone() }
    };
    tokens.iter().enumerate().map(token_of).collect()
}

fn words(tokens: &[Token]) -> impl Iterator<Item = (usize, &str)> {
    tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| token.kind == Kind::Word)
        .map(|(at, token)| (at, token.text.as_str()))
}

/// Short names: those of the whole bundle, and those of one unit.
struct Names {
    short: BTreeMap<(Option<usize>, String), String>,
    taken: BTreeSet<String>,
}

impl Names {
    /// The most frequent name gets the shortest.
    fn assign(&mut self, unit: Option<usize>, uses: &[&str]) {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for name in uses {
            *counts.entry(name).or_default() += 1;
        }
        let mut frequent: Vec<_> = counts.into_iter().collect();
        frequent.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
        let mut next: BTreeMap<&str, usize> = BTreeMap::new();
        for (name, _) in frequent {
            // Names of the bundle and names of a unit stand in each other's sight: they begin differently.
            let prefix = match name.as_bytes().first() {
                Some(b'#') => "#",
                Some(b'_') => "_",
                _ if unit.is_none() => "$",
                _ => "",
            };
            let number = next.entry(prefix).or_default();
            let new = loop {
                let new = format!("{prefix}{}", letters(*number));
                *number += 1;
                if !self.taken.contains(&new) && !is_keyword(&new) {
                    break new;
                }
            };
            self.short.insert((unit, name.to_owned()), new);
        }
    }

    fn of(&self, unit: usize, name: &str) -> Option<&String> {
        let local = self.short.get(&(Some(unit), name.to_owned()));
        local.or_else(|| self.short.get(&(None, name.to_owned())))
    }
}

/// For each token, which unit it is of: a statement of the bundle, or a member of one of its classes.
/// Names that are declared in a unit are known there only.
fn units(tokens: &[Token]) -> Vec<usize> {
    let mut unit = 0;
    let mut open = 0_usize;
    let mut class_ahead = false;
    let mut in_class = false;
    let mut units = Vec::with_capacity(tokens.len());
    for token in tokens {
        units.push(unit);
        class_ahead |= open == 0 && token.is("class");
        match (token.kind, token.text.as_str()) {
            (Kind::Sign, "{" | "(" | "[") => {
                if class_ahead && open == 0 && token.is("{") {
                    (class_ahead, in_class) = (false, true);
                    unit += 1;
                }
                open += 1;
            }
            (Kind::Sign, "}" | ")" | "]") => open = open.saturating_sub(1),
            (Kind::Template, text) => {
                open = (open + usize::from(text.ends_with("${")))
                    .saturating_sub(usize::from(text.starts_with('}')));
            }
            _ => {}
        }
        let level = usize::from(in_class && open > 0);
        if open == level && (token.is(";") || token.is("}")) {
            unit += 1;
        }
        in_class &= open > 0;
    }
    units
}

/// Names declared by the bundle's own statements.
fn top_level(tokens: &[Token], roles: &[Role]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut open = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match (token.kind, token.text.as_str()) {
            (Kind::Sign, "{" | "(" | "[") => open += 1,
            (Kind::Sign, "}" | ")" | "]") => open = open.saturating_sub(1),
            (Kind::Template, text) => {
                open = (open + usize::from(text.ends_with("${")))
                    .saturating_sub(usize::from(text.starts_with('}')));
            }
            (Kind::Word, "const" | "let" | "class" | "function") if open == 0 => {
                names.extend(pattern(tokens, roles, at + 1));
            }
            _ => {}
        }
    }
    names
}

/// `#name`, and by the house's rule `_name`: known to the bundle only.
fn is_internal(name: &str) -> bool {
    name.starts_with('#') || (name.starts_with('_') && name.len() > 1)
}

/// a, b, … z, A, … Z, aa, ba, …
fn letters(mut number: usize) -> String {
    const LETTERS: &[u8; 52] = b"etnsiroaclduhmpfgybvwkxTSIRCALOEDNMPFHBUGVWYKXQJZjzq";
    let mut text = String::new();
    loop {
        text.push(char::from(LETTERS[number % LETTERS.len()]));
        number /= LETTERS.len();
        if number == 0 {
            return text;
        }
        number -= 1;
    }
}

/// The tokens as text, with no more white space than the language asks for.
pub(crate) fn print(tokens: &[Token]) -> String {
    let mut text = String::new();
    let mut before: Option<&Token> = None;
    // For each open brace: whether its end is the end of a statement or member.
    let mut braces = Vec::new();
    let mut ended = false;
    for (at, token) in tokens.iter().enumerate() {
        // The last semicolon of a block says nothing, nor does the last comma of a list.
        let ends = |closing: &[&str]| {
            tokens.get(at + 1).is_some_and(|next| closing.iter().any(|sign| next.is(sign)))
        };
        if (token.is(";") && ends(&["}"])) || (token.is(",") && ends(&["}", ")"])) {
            continue;
        }
        if let Some(before) = before {
            text.push_str(if ended { "" } else { gap(before, token) });
        }
        text.push_str(&compact(before, token));
        ended = false;
        if token.is("{") {
            braces.push(before.is_some_and(opens_statement));
        } else if token.is("}") {
            ended = braces.pop().unwrap_or_default();
        }
        before = Some(token);
    }
    text.push('\n');
    text
}

/// Whether a brace behind this is the body of a method, a function or a statement, not part of a value.
fn opens_statement(before: &Token) -> bool {
    [")", "else", "try", "finally", "do", "catch"].iter().any(|word| before.is(word))
}

fn gap(before: &Token, token: &Token) -> &'static str {
    let wordy = |kind| matches!(kind, Kind::Word | Kind::Literal);
    // Where a statement may end without a semicolon, the line's end is kept.
    let may_end = token.first_of_line
        && (wordy(before.kind)
            || before.kind == Kind::Template
            || matches!(before.text.as_str(), "}" | ")" | "]" | "++" | "--"))
        && (wordy(token.kind)
            || token.kind == Kind::Template
            || matches!(token.text.as_str(), "[" | "(" | "{" | "++" | "--"));
    if may_end {
        return "\n";
    }
    let glued = wordy(before.kind)
        && wordy(token.kind)
        && !token.text.starts_with(['"', '\'', '#', '/'])
        && !before.text.ends_with(['"', '\'', '/']);
    let hash = before.kind == Kind::Word && token.text.starts_with('#');
    let signs = matches!(
        (before.text.as_str(), token.text.as_str()),
        ("+", "+" | "++") | ("-", "-" | "--")
    );
    let division = before.text == "/" && token.text.starts_with('/');
    if glued || hash || signs || division { " " } else { "" }
}

/// Style sheets in templates tagged `css` lose their white space, all else stays as written.
fn compact(before: Option<&Token>, token: &Token) -> String {
    let style = token.kind == Kind::Template && before.is_some_and(|before| before.is("css"));
    if !style { token.text.clone() } else { style_sheet(&token.text) }
}

/// A style sheet without comments and without white space that says nothing.
pub(crate) fn style_sheet(text: &str) -> String {
    let mut bare = String::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("/*") {
        bare.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    bare.push_str(rest);
    let words: Vec<&str> = bare.split_whitespace().collect();
    let mut sheet = words.join(" ");
    for sign in ["{", "}", ";", ","] {
        sheet = sheet.replace(&format!("{sign} "), sign).replace(&format!(" {sign}"), sign);
    }
    sheet.replace(": ", ":").replace(";}", "}").replace("` ", "`").replace(" `", "`")
}
