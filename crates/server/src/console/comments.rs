//! Removes comments and indentation from the console's own scripts and styles: a fifth of their size.

/// How the comment with the type of an expression begins. It ends on the same line.
const TYPE: &str = "/** @type {";

/// The source without lines that are only a comment, without the types of expressions, without empty
/// lines and without white space at the ends of lines. A line of code keeps its other comments, and so
/// does a template literal, unless a line in it begins like a comment.
pub(super) fn without_comments(source: &str) -> String {
    let mut kept = String::with_capacity(source.len());
    let mut is_in_comment = false;
    for line in source.lines() {
        let mut line = line.trim();
        if !is_in_comment && let Some(comment) = line.strip_prefix("/*") {
            (is_in_comment, line) = (true, comment);
        }
        if is_in_comment {
            let Some((_, rest)) = line.split_once("*/") else { continue };
            (is_in_comment, line) = (false, rest.trim_start());
        }
        if !line.is_empty() && !line.starts_with("//") {
            let mut expressions = line.split(TYPE);
            kept.push_str(expressions.next().unwrap_or_default());
            for typed in expressions {
                let (_, expression) = typed.split_once("*/").unwrap_or_default();
                kept.push_str(expression.trim_start());
            }
            kept.push('\n');
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_only_comments_are_removed() {
        let source =
            "// One.\n/** Two. */\n/**\n * Three.\n */\n/* Four */\nfive();\n\n  six(); // 6\n";
        assert_eq!(without_comments(source), "five();\nsix(); // 6\n");
    }

    #[test]
    fn types_of_expressions_are_removed() {
        let source = "a(/** @type {B<C>} */ (d).e, /** @type {F} a g */ (g)); // h\n";
        assert_eq!(without_comments(source), "a((d).e, (g)); // h\n");
    }

    #[test]
    fn code_after_a_comment_and_addresses_in_code_stay() {
        let source = "/** @type {A} */ (a).b();\n/* a\n b */ c();\nd('http://e');\nf /* g */ ();\n";
        assert_eq!(without_comments(source), "(a).b();\nc();\nd('http://e');\nf /* g */ ();\n");
    }
}
