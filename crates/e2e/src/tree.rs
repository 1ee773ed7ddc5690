//! The tree of commands, read from the program's own help.

use crate::place::Place;

/// A command that does something: its words, without `turno`.
pub type Leaf = Vec<String>;

/// Every leaf, in the order of the help.
pub fn leaves(place: &Place) -> Vec<Leaf> {
    let mut found = Vec::new();
    walk(place, &mut Vec::new(), &mut found);
    found
}

fn walk(place: &Place, words: &mut Vec<String>, found: &mut Vec<Leaf>) {
    let mut line = words.clone();
    line.push("--help".to_owned());
    let help = place.run(line).expect(0).text();
    let commands = commands_of(&help);
    if commands.is_empty() {
        return found.push(words.clone());
    }
    for command in commands {
        words.push(command);
        walk(place, words, found);
        words.pop();
    }
}

/// The names below `Commands:`, without `help`.
fn commands_of(help: &str) -> Vec<String> {
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_stand_below_their_heading() {
        let help = "About\n\nUsage: x\n\nCommands:\n  ls    List\n          more about it\n  show  Show [aliases: get]\n  help  Help\n\nOptions:\n  -h  x\n";
        assert_eq!(commands_of(help), ["ls", "show"]);
        assert!(commands_of("Usage: x\n\nOptions:\n  -h\n").is_empty());
    }
}
