//! Which parameters a template takes.

use std::borrow::Cow;

use crate::{
    document::Json,
    render::{array_field, fill, str_field, whatsapp::components::Components},
    rulebook::{Category, ParameterFormat},
    template::Template,
    validation::placeholders,
    violation::ViolationCollector,
};

/// The parameters that a template, or a card of it, takes.
#[derive(Default)]
pub(super) struct Expected<'t> {
    /// `None` if there is no header.
    pub(super) header: Option<ExpectedHeader<'t>>,
    /// `None` if there is no body.
    pub(super) body: Option<Placeholders<'t>>,
    pub(super) buttons: Vec<ExpectedButton<'t>>,
    /// Whether there is an offer that ends.
    pub(super) has_offer_end: bool,
    /// `None` if there is no carousel.
    pub(super) carousel: Option<ExpectedCards<'t>>,
    /// Whether the template delivers a one-time code, which the body and the button repeat.
    pub(super) is_authentication: bool,
}

pub(super) enum ExpectedHeader<'t> {
    Text(Placeholders<'t>),
    /// One parameter of this format, such as `IMAGE`.
    One(&'t str),
}

/// The placeholders of a text.
pub(super) enum Placeholders<'t> {
    /// `{{1}}` to this number.
    Numbered(usize),
    Named(Vec<&'t str>),
}

impl Placeholders<'_> {
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Numbered(count) => *count,
            Self::Named(names) => names.len(),
        }
    }

    /// The number or name of each placeholder.
    pub(super) fn names(&self) -> Vec<Cow<'_, str>> {
        match self {
            Self::Numbered(count) => (1..=*count).map(|it| it.to_string().into()).collect(),
            Self::Named(names) => names.iter().map(|it| Cow::Borrowed(*it)).collect(),
        }
    }
}

pub(super) struct ExpectedCards<'t> {
    cards: Vec<Expected<'t>>,
    /// Product cards in the template are samples: a message may have more of them.
    are_products: bool,
}

impl<'t> ExpectedCards<'t> {
    /// The number of cards that a message must have, which has `given` of them.
    pub(super) fn count(&self, given: usize) -> usize {
        if self.are_products { given.clamp(2, 10) } else { self.cards.len() }
    }

    pub(super) fn card(&self, index: usize) -> Option<&Expected<'t>> {
        self.cards.get(index).or(self.cards.last())
    }
}

pub(super) struct ExpectedButton<'t> {
    pub(super) button_type: &'static ButtonType,
    /// Whether it takes a parameter. A URL without a placeholder does not.
    pub(super) takes_parameter: bool,
    /// The name of the placeholder of its URL, unless it is numbered.
    pub(super) url_parameter: Option<&'t str>,
}

/// How a button of a type is sent.
pub(super) struct ButtonType {
    /// The type in the template.
    template_type: &'static str,
    /// The type in Meta's error details.
    pub(super) display_name: &'static str,
    /// The `sub_type` of its component, if it ever takes a parameter.
    pub(super) sub_type: Option<&'static str>,
    /// Whether its parameter must be present.
    pub(super) is_required: bool,
}

const fn row(
    template_type: &'static str,
    display_name: &'static str,
    sub_type: Option<&'static str>,
    is_required: bool,
) -> ButtonType {
    ButtonType { template_type, display_name, sub_type, is_required }
}

/// All types of buttons.
pub(super) static BUTTON_TYPES: &[ButtonType] = &[
    row("QUICK_REPLY", "QuickReply", Some("quick_reply"), false),
    row("URL", "Url", Some("url"), true),
    row("PHONE_NUMBER", "Call", None, false),
    row("COPY_CODE", "CopyCode", Some("copy_code"), true),
    row("OTP", "Url", Some("url"), true),
    row("FLOW", "Flow", Some("flow"), true),
    row("CATALOG", "Catalog", Some("catalog"), false),
    row("MPM", "Mpm", Some("mpm"), true),
    row("SPM", "Spm", None, false),
    row("VOICE_CALL", "VoiceCall", Some("voice_call"), false),
    row("ORDER_DETAILS", "OrderDetails", Some("order_details"), true),
    row("REQUEST_CONTACT_INFO", "RequestContactInfo", None, false),
];

impl<'t> Expected<'t> {
    /// The parameters that a template with this content takes.
    pub(super) fn of(template: &Template, content: &'t Json<'_>) -> Self {
        let format = str_field(content, "parameter_format").and_then(ParameterFormat::parse);
        let format = format.unwrap_or(ParameterFormat::Positional);
        let is_authentication = template.category() == Category::Authentication;
        // The renderer reports parts that it does not know.
        let components = Components::of(content, &mut ViolationCollector::default());
        let mut expected = Self::of_components(&components, format);
        expected.carousel = components.carousel.map(|it| ExpectedCards::of(it, format));
        if is_authentication {
            expected.is_authentication = true;
            expected.body = Some(Placeholders::Numbered(1));
        }
        expected
    }

    fn of_components(components: &Components<'t, '_>, format: ParameterFormat) -> Self {
        let header = components.header.and_then(|it| match str_field(it, "format")? {
            "TEXT" => Some(ExpectedHeader::Text(Placeholders::of(it, format))),
            other => Some(ExpectedHeader::One(other)),
        });
        let offer = components.offer.and_then(|it| it.get("limited_time_offer"));
        let ends = offer.and_then(|it| it.get("has_expiration"));
        let buttons = array_field(components.buttons, "buttons").iter();
        Self {
            header,
            body: components.body.map(|it| Placeholders::of(it, format)),
            buttons: buttons.filter_map(|it| ExpectedButton::of(it, format)).collect(),
            has_offer_end: matches!(ends, Some(Json::Bool(true))),
            ..Self::default()
        }
    }
}

impl<'t> Placeholders<'t> {
    fn of(component: &'t Json<'_>, format: ParameterFormat) -> Self {
        let text = str_field(component, "text").unwrap_or_default();
        match format {
            ParameterFormat::Positional => Self::Numbered(fill::placeholder_count(text)),
            ParameterFormat::Named => Self::Named(placeholders::names(text)),
        }
    }
}

impl<'t> ExpectedCards<'t> {
    fn of(carousel: &'t Json<'_>, format: ParameterFormat) -> Self {
        let card = |it| {
            let components = Components::of(it, &mut ViolationCollector::default());
            Expected::of_components(&components, format)
        };
        let cards: Vec<_> = array_field(Some(carousel), "cards").iter().map(card).collect();
        let is_product =
            |it: &Expected<'_>| matches!(it.header, Some(ExpectedHeader::One("PRODUCT")));
        let are_products = !cards.is_empty() && cards.iter().all(is_product);
        Self { cards, are_products }
    }
}

impl<'t> ExpectedButton<'t> {
    /// Whether it delivers the code of an authentication template.
    pub(super) fn is_one_time_code(&self) -> bool {
        self.button_type.template_type == "OTP"
    }

    /// `None` for an unknown type, which the renderer reports.
    fn of(button: &'t Json<'_>, format: ParameterFormat) -> Option<Self> {
        let template_type = str_field(button, "type")?;
        let button_type = BUTTON_TYPES.iter().find(|it| it.template_type == template_type)?;
        let url = str_field(button, "url").unwrap_or_default();
        let base = placeholders::base(url, format);
        let is_url = template_type == "URL";
        let name = base.map(|base| url[base.len()..].trim_matches(['{', '}']));
        Some(Self {
            button_type,
            takes_parameter: button_type.sub_type.is_some() && (!is_url || base.is_some()),
            url_parameter: name.filter(|name| is_url && *name != "1"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rulebook::{FieldType, VariantContent, WHATSAPP};

    #[test]
    fn every_button_of_the_rulebook_has_a_row() {
        let components = WHATSAPP.template.fields.iter().find(|it| it.name == "components");
        let Some(FieldType::TaggedList(list)) = components.map(|it| &it.field_type) else {
            panic!("components are a list")
        };
        let variant = list.item.variants.iter().find(|it| it.value == "BUTTONS").unwrap();
        let VariantContent::Fields(buttons) = &variant.content else { panic!("fields") };
        let FieldType::TaggedList(list) = &buttons.fields[0].field_type else { panic!("a list") };
        for button_type in list.item.tag_values() {
            assert!(BUTTON_TYPES.iter().any(|it| it.template_type == button_type), "{button_type}");
        }
    }
}
