//! Every relative link leads to an existing file, and to a heading in it.

use crate::page::{Page, pages, root};
use std::path::{Component, Path, PathBuf};

/// What a page links to: `[text](here)`, outside of blocks, comments and inline code.
fn links(page: &Page) -> Vec<String> {
    let outside = |line: &str| line.split('`').step_by(2).collect::<String>();
    let prose: String = shown(&page.prose()).lines().map(outside).collect();
    let after = prose.split("](").skip(1);
    after.filter_map(|rest| rest.split_once(')')).map(|(link, _)| link.to_owned()).collect()
}

/// A text without its comments.
fn shown(text: &str) -> String {
    let mut parts = text.split("<!--");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once("-->").map_or("", |(_, rest)| rest))
}

/// The anchors of the headings, as GitHub makes them.
fn anchors(text: &str) -> Vec<String> {
    let mut inside = false;
    let headings = text.lines().filter(|line| {
        inside ^= line.starts_with("```");
        !inside && line.starts_with('#')
    });
    let named = |heading: &str| {
        let words = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        words.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
    };
    headings.map(named).collect()
}

/// A path without `..` and `.`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = plain.pop(),
            Component::CurDir => {}
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => plain.push(part),
        }
    }
    plain
}

fn broken(page: &Page, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let folder = page.path.parent().unwrap();
    let target = if file.is_empty() { page.path.clone() } else { plain(&folder.join(file)) };
    let target = root().join(target);
    if !target.exists() {
        return Some(format!("{}: {link} is not there", page.name()));
    }
    let wrong = !anchor.is_empty()
        && !anchors(&std::fs::read_to_string(target).unwrap()).contains(&anchor.to_owned());
    wrong.then(|| format!("{}: {link} has no such heading", page.name()))
}

#[test]
fn every_relative_link_leads_somewhere() {
    let pages = pages();
    let all = pages.iter().flat_map(|page| links(page).into_iter().map(move |link| (page, link)));
    let broken: Vec<String> = all.filter_map(|(page, link)| broken(page, &link)).collect();
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn every_page_of_the_documents_can_be_reached_from_their_index() {
    let pages = pages();
    let mut reached = vec![PathBuf::from("docs/README.md")];
    let mut next = 0;
    while let Some(path) = reached.get(next).cloned() {
        next += 1;
        let Some(page) = pages.iter().find(|page| page.path == path) else { continue };
        for link in links(page) {
            let target = plain(&path.parent().unwrap().join(link.split('#').next().unwrap()));
            if !reached.contains(&target) {
                reached.push(target);
            }
        }
    }
    let of_users = |page: &&Page| page.path.starts_with("docs") && !page.path.starts_with("docs/design");
    let lost: Vec<String> =
        pages.iter().filter(of_users).filter(|page| !reached.contains(&page.path)).map(Page::name).collect();
    assert!(lost.is_empty(), "no link leads to {lost:?}");
}

#[test]
fn links_in_comments_do_not_count() {
    let page = Page { path: "x.md".into(), text: "[a](b)<!-- [c](d)\n--> `[e](f)` [g](h)".into() };
    assert_eq!(links(&page), ["b", "h"]);
}

#[test]
fn a_heading_is_found_as_pages_name_it() {
    assert_eq!(
        anchors("# The feed\n```\n# not this\n```\n## What's `x`, then?\n"),
        ["the-feed", "whats-x-then"]
    );
}
