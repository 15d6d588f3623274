//! Enums whose variants have a stable id and a sentence for the documentation.

/// Declares an enum with a stable id and a sentence of documentation for each variant, and
/// implements `ALL`, `id()`, `about()` and `Serialize` (as the id) for it.
///
/// `pub enum Name;` is followed by rows of the form `Variant "id" "Sentence.";`. There are two
/// extensions:
///
/// - `pub enum Name grouped;` is followed by `GROUP { rows }` and also declares a constant for
///   each group.
/// - `pub enum Name with level: Level;` adds a column: in a row `Variant "id" Value "Sentence.";`
///   the method `level()` returns `Level::Value`.
macro_rules! id_catalogue {
    (
        $(#[$doc:meta])* pub enum $name:ident grouped;
        $(
            $(#[$group_doc:meta])*
            $group:ident { $($variant:ident $id:literal $about:literal;)+ }
        )+
    ) => {
        $crate::id_catalogue::id_catalogue! {
            $(#[$doc])* pub enum $name;
            $($($variant $id $about;)+)+
        }

        impl $name {
            $($(#[$group_doc])* pub const $group: &[Self] = &[$(Self::$variant),+];)+
        }
    };
    (
        $(#[$doc:meta])* pub enum $name:ident with $column:ident: $type:ident;
        $($variant:ident $id:literal $value:ident $about:literal;)+
    ) => {
        $crate::id_catalogue::id_catalogue! {
            $(#[$doc])* pub enum $name;
            $($variant $id $about;)+
        }

        impl $name {
            #[doc = concat!("The `", stringify!($column), "` column of the catalogue.")]
            pub fn $column(self) -> $type {
                match self {
                    $(Self::$variant => $type::$value,)+
                }
            }
        }
    };
    ($(#[$doc:meta])* pub enum $name:ident; $($variant:ident $id:literal $about:literal;)+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = $about] $variant,)+
        }

        impl $name {
            /// Every variant, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The stable id, in kebab case.
            pub fn id(self) -> &'static str {
                match self {
                    $(Self::$variant => $id,)+
                }
            }

            /// The sentence that the documentation shows.
            pub fn about(self) -> &'static str {
                match self {
                    $(Self::$variant => $about,)+
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.id())
            }
        }
    };
}

pub(crate) use id_catalogue;
