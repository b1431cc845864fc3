//! Which names of a bundle are its own, and what each occurrence of one is.

use std::collections::BTreeSet;

use super::token::{Kind, Token};

/// What an occurrence of a word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A variable: follows its declaration.
    Variable,
    /// `{name}`: key and variable in one.
    Shorthand,
    /// A keyword, a key, a member: stays as it is.
    Other,
}

/// What a bracket encloses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bracket {
    Block,
    Object,
    Class,
    /// Parentheses, square brackets, and `${…}`.
    Values,
}

const KEYWORDS: [&str; 37] = [
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "default",
    "delete",
    "do",
    "else",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "get",
    "if",
    "import",
    "in",
    "instanceof",
    "let",
    "new",
    "null",
    "of",
    "return",
    "set",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
];
const MORE_KEYWORDS: [&str; 7] = ["undefined", "void", "while", "with", "yield", "meta", "as"];

pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word) || MORE_KEYWORDS.contains(&word)
}

/// The role of every token.
pub(crate) fn roles(tokens: &[Token]) -> Vec<Role> {
    let mut open: Vec<Bracket> = Vec::new();
    let mut class_ahead = false;
    let mut roles = Vec::with_capacity(tokens.len());
    for (at, token) in tokens.iter().enumerate() {
        let inside = open.last().copied().unwrap_or(Bracket::Block);
        roles.push(role(tokens, at, inside));
        class_ahead |= token.is("class");
        match (token.kind, token.text.as_str()) {
            (Kind::Sign, "{") => {
                open.push(brace(tokens, at, inside, class_ahead));
                class_ahead = false;
            }
            (Kind::Sign, "(" | "[") => open.push(Bracket::Values),
            (Kind::Sign, "}" | ")" | "]") => drop(open.pop()),
            (Kind::Template, text) => {
                if text.starts_with('}') {
                    open.pop();
                }
                if text.ends_with("${") {
                    open.push(Bracket::Values);
                }
            }
            _ => {}
        }
    }
    roles
}

fn brace(tokens: &[Token], at: usize, inside: Bracket, class_ahead: bool) -> Bracket {
    if class_ahead {
        return Bracket::Class;
    }
    let Some(before) = at.checked_sub(1).and_then(|before| tokens.get(before)) else {
        return Bracket::Block;
    };
    let block = match before.kind {
        Kind::Word => {
            matches!(before.text.as_str(), "else" | "try" | "finally" | "do" | "catch" | "static")
        }
        Kind::Sign => match before.text.as_str() {
            ")" | "=>" | ";" | "{" | "}" => {
                inside != Bracket::Object || before.text == ")" || before.text == "=>"
            }
            _ => false,
        },
        Kind::Literal | Kind::Template => false,
    };
    if block { Bracket::Block } else { Bracket::Object }
}

fn role(tokens: &[Token], at: usize, inside: Bracket) -> Role {
    let token = &tokens[at];
    if token.kind != Kind::Word || token.text.starts_with('#') || is_keyword(&token.text) {
        return Role::Other;
    }
    let before = at.checked_sub(1).map(|before| &tokens[before]);
    let after = tokens.get(at + 1);
    let follows = |text| before.is_some_and(|before| before.is(text));
    let precedes = |text| after.is_some_and(|after| after.is(text));
    if follows(".") || follows("?.") {
        return Role::Other;
    }
    let modified = || ["get", "set", "async", "static", "*"].into_iter().any(follows);
    match inside {
        Bracket::Class if follows("{") || follows("}") || follows(";") || modified() => Role::Other,
        Bracket::Object if follows("{") || follows(",") => {
            match after.map(|after| after.text.as_str()) {
                Some("," | "}" | "=") => Role::Shorthand,
                Some(":" | "(") => Role::Other,
                _ => Role::Variable,
            }
        }
        Bracket::Object if modified() && precedes("(") => Role::Other,
        _ => Role::Variable,
    }
}

/// The names that the bundle declares anywhere: variables, functions, classes, parameters.
pub(crate) fn declared(tokens: &[Token], roles: &[Role]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for at in 0..tokens.len() {
        let next = at + 1;
        let text = tokens[at].text.as_str();
        match (tokens[at].kind, text) {
            (Kind::Word, "const" | "let" | "class" | "function") => {
                names.extend(pattern(tokens, roles, next));
            }
            (Kind::Sign, "(") if is_parameters(tokens, at) => {
                names.extend(pattern(tokens, roles, at));
            }
            (Kind::Word, _) if tokens.get(next).is_some_and(|token| token.is("=>")) => {
                names.insert(text.to_owned());
            }
            _ => {}
        }
    }
    names
}

/// Whether parentheses hold parameters: those of an arrow, a function, a method or a `catch`.
fn is_parameters(tokens: &[Token], open: usize) -> bool {
    let after = tokens.get(closing(tokens, open) + 1);
    if after.is_some_and(|after| after.is("=>")) {
        return true;
    }
    let before = open.checked_sub(1).map(|before| tokens[before].text.as_str());
    let controls = matches!(before, Some("if" | "for" | "while" | "switch"));
    after.is_some_and(|after| after.is("{")) && !controls
}

/// The names bound by the pattern that begins at `from`: one name, or all in its brackets that are no
/// default value.
pub(crate) fn pattern(tokens: &[Token], roles: &[Role], from: usize) -> Vec<String> {
    let end = if ["(", "{", "["].into_iter().any(|open| tokens[from].is(open)) {
        closing(tokens, from)
    } else {
        from
    };
    let mut names = Vec::new();
    let mut default = None;
    let mut depth = 0_usize;
    for at in from..=end {
        let token = &tokens[at];
        match token.text.as_str() {
            "{" | "(" | "[" if token.kind == Kind::Sign => depth += 1,
            "}" | ")" | "]" if token.kind == Kind::Sign => depth = depth.saturating_sub(1),
            "=" if token.kind == Kind::Sign && default.is_none() => default = Some(depth),
            _ => {}
        }
        // A default value ends at the comma of its own level, or with that level.
        let ends = default.is_some_and(|level| depth < level || (depth == level && token.is(",")));
        if ends {
            default = None;
        }
        if default.is_none() && roles[at] != Role::Other {
            names.push(token.text.clone());
        }
    }
    names
}

/// The bracket that closes the one at `open`; the last token where there is none.
fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match (token.kind, token.text.as_str()) {
            (Kind::Sign, "(" | "[" | "{") => depth += 1,
            (Kind::Template, text) => {
                depth += usize::from(text.ends_with("${"));
                depth -= usize::from(text.starts_with('}'));
            }
            (Kind::Sign, ")" | "]" | "}") => {
                depth -= 1;
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    tokens.len() - 1
}
