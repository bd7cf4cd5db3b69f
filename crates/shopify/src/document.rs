//! A parsed GraphQL document, as far as its cost and its shape depend on it: operations, fields,
//! the arguments that are counts. It knows no schema and validates nothing; a text that cannot be
//! parsed is `None`, whatever is wrong with it.

mod lex;
mod parse;

pub use lex::{Token, TokenKind, tokens};

/// Longest document that is parsed, in bytes: more than Shopify accepts.
const DOCUMENT_LEN_MAX: usize = 256 * 1024;

/// The type of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationType {
    /// Reads.
    Query,
    /// Changes something.
    Mutation,
    /// Subscribes to events.
    Subscription,
}

/// A document.
#[derive(Clone, Debug)]
pub struct Document<'a> {
    /// All tokens, without whitespace and comments.
    pub tokens: Vec<Token<'a>>,
    /// Its operations.
    pub operations: Vec<OperationDefinition<'a>>,
    /// Its fragments.
    pub fragments: Vec<Fragment<'a>>,
}

/// One operation.
#[derive(Clone, Debug)]
pub struct OperationDefinition<'a> {
    /// Its type.
    pub operation_type: OperationType,
    /// Its name.
    pub name: Option<&'a str>,
    /// Variables that have a default, and that default.
    pub defaults: Vec<(&'a str, ArgumentValue<'a>)>,
    /// What it selects.
    pub selection: Vec<Selection<'a>>,
}

/// A named selection.
#[derive(Clone, Debug)]
pub struct Fragment<'a> {
    /// Its name.
    pub name: &'a str,
    /// The type it applies to.
    pub on: &'a str,
    /// What it selects.
    pub selection: Vec<Selection<'a>>,
}

/// A part of a selection.
#[derive(Clone, Debug)]
pub enum Selection<'a> {
    /// A field.
    Field(Field<'a>),
    /// A spread of the fragment with this name.
    Spread(&'a str),
    /// An inline fragment for objects of this type, or of any.
    Inline(Option<&'a str>, Vec<Selection<'a>>),
}

/// A field.
#[derive(Clone, Debug)]
pub struct Field<'a> {
    /// Its name, not its alias.
    pub name: &'a str,
    /// Its arguments.
    pub arguments: Vec<(&'a str, ArgumentValue<'a>)>,
    /// The names of its directives.
    pub directives: Vec<&'a str>,
    /// What is selected of it; empty for a scalar.
    pub selection: Vec<Selection<'a>>,
    /// Where a directive can be inserted: after its name and arguments, in bytes.
    pub head_end: usize,
}

/// The value of an argument, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentValue<'a> {
    /// A whole number.
    Number(u64),
    /// A list of this length.
    List(u64),
    /// A variable.
    Variable(&'a str),
    /// Anything else.
    Other,
}

impl<'a> Document<'a> {
    /// Parses a document; `None` when it is invalid, too long or nested too deep.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        if text.len() > DOCUMENT_LEN_MAX {
            return None;
        }
        parse::document(tokens(text)?)
    }

    /// Returns the selected operation: the one with that name, or the only one.
    #[must_use]
    pub fn operation(&self, name: Option<&str>) -> Option<&OperationDefinition<'a>> {
        match name {
            Some(name) => self.operations.iter().find(|operation| operation.name == Some(name)),
            None if self.operations.len() == 1 => self.operations.first(),
            None => None,
        }
    }

    /// Returns the fragment with this name.
    #[must_use]
    pub fn fragment(&self, name: &str) -> Option<&Fragment<'a>> {
        self.fragments.iter().find(|fragment| fragment.name == name)
    }

    /// Returns the fields of a selection and of its fragments, whatever type they apply to; `None`
    /// when fragments are missing or form a cycle.
    #[must_use]
    pub fn fields<'d>(&'d self, selection: &'d [Selection<'a>]) -> Option<Vec<&'d Field<'a>>> {
        let mut found = Vec::new();
        self.collect(selection, FRAGMENT_DEPTH_MAX, &mut found)?;
        Some(found)
    }

    fn collect<'d>(
        &'d self,
        selection: &'d [Selection<'a>],
        depth: usize,
        found: &mut Vec<&'d Field<'a>>,
    ) -> Option<()> {
        for part in selection {
            match part {
                Selection::Field(field) => found.push(field),
                Selection::Inline(_, inner) => self.collect(inner, depth.checked_sub(1)?, found)?,
                Selection::Spread(name) => {
                    self.collect(&self.fragment(name)?.selection, depth.checked_sub(1)?, found)?;
                }
            }
            if found.len() > FIELDS_MAX {
                return None;
            }
        }
        Some(())
    }
}

impl<'a> Field<'a> {
    /// Returns the value of an argument.
    #[must_use]
    pub fn argument(&self, name: &str) -> Option<ArgumentValue<'a>> {
        self.arguments.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

/// Deepest nesting of fragments in fragments.
const FRAGMENT_DEPTH_MAX: usize = 12;
/// Most fields per selection, with fragments expanded.
const FIELDS_MAX: usize = 10_000;

#[cfg(test)]
mod tests;
