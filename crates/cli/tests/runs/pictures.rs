//! The pictures in the documentation show what the program says today.

use pinfold_pictures::{differs, scenes};
use std::path::Path;

#[test]
fn the_pictures_that_are_kept_show_what_is_shown_today() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures");
    let drawn = scenes::draw(Path::new(env!("CARGO_BIN_EXE_pinfold"))).unwrap();
    for (name, picture) in &drawn {
        let known = std::fs::read_to_string(kept.join(name)).unwrap_or_default();
        let differs = differs(&known, picture);
        assert_eq!(
            differs, None,
            "docs/pictures/{name} is not what is shown today: docs/pictures/make draws it again"
        );
    }
    let files =
        std::fs::read_dir(&kept).unwrap().flatten().map(|file| file.file_name().into_string().unwrap());
    let mut files: Vec<String> = files.filter(|name| name.ends_with(".svg")).collect();
    files.sort();
    let mut names: Vec<String> = drawn.into_iter().map(|(name, _)| name).collect();
    names.sort();
    assert_eq!(files, names, "a picture that no scene draws is not kept");
}
