/* SPDX-License-Identifier: Apache-2.0 */
#include "report/page/page.h"

#include "base/escape.h"
#include "report/draw/html_timeline.h"

/* Dark text on white, like figures and paper. */
static const char plain_style[] =
    "\n:root{color-scheme:light}"
    "\nbody{font:16px/1.5 system-ui,'DejaVu Sans',sans-serif;color:#222;background:#fff;margin:0}"
    "\nmain{max-width:1200px;margin:0 auto;padding:16px}"
    "\nh1{font-size:1.5em;line-height:1.25;margin:.4em 0}"
    "\nh2{font-size:1.2em;line-height:1.25;margin:2em 0 .5em;border-top:1px solid #bbb;"
    "padding-top:.8em}"
    "\np{margin:.5em 0;max-width:46em}"
    "\n.answer p:first-of-type{font-size:1.15em}"
    "\n.wide{overflow-x:auto;margin:1em 0}"
    "\ntable{border-collapse:collapse;font-size:.875em;font-variant-numeric:tabular-nums}"
    "\ncaption{text-align:left;font-weight:600;padding:.2em 0}"
    "\nth,td{padding:.2em .7em;text-align:left;vertical-align:top}"
    "\nth{border-bottom:2px solid #555;vertical-align:bottom}"
    "\ntd{border-bottom:1px solid #ddd}"
    "\n.n{text-align:right}"
    "\n.n,td:first-child{white-space:nowrap}"
    "\n.note{min-width:14em}"
    "\nsmall{font-weight:400;color:#555;display:block;font-size:1em}"
    "\nfigure{margin:1em 0;overflow-x:auto}"
    "\nimg{display:block;width:100%;min-width:900px;height:auto}"
    "\npre{background:#f3f3f3;padding:.7em;white-space:pre-wrap;overflow-wrap:anywhere}"
    "\n:focus-visible{outline:2px solid #0072b2}"
    "\n@page{size:A4 landscape;margin:12mm}"
    "\n@media print{body{font-size:10pt}main{max-width:none;padding:0}p{max-width:none}"
    ".wide,figure{overflow:visible}table{font-size:7.5pt}th,td{padding:.1em .4em}"
    "tr,figure{break-inside:avoid}h2{break-after:avoid}thead{display:table-header-group}"
    "img{width:auto;min-width:0;max-width:100%;max-height:165mm}}";

/* Hash of the text, as written in a policy. Caller frees. */
static char *
hash_of(const char *text)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    guint8 digest[32];
    gsize length = sizeof(digest);

    g_checksum_update(sum, (const guchar *)text, -1);
    g_checksum_get_digest(sum, digest, &length);
    return g_base64_encode(digest, length);
}

static void
append_element(GString *out, const char *tag, const char *text)
{
    g_string_append_printf(out, "<%s>", tag);
    lh_escape_html(out, text);
    g_string_append_printf(out, "</%s>\n", tag);
}

void
lh_page_begin(GString *out, const char *title, const char *below)
{
    g_autoptr(GString) style = g_string_new(plain_style);
    g_autofree char *hash = NULL;

    lh_html_timeline_style(style);
    g_string_append_c(style, '\n');
    hash = hash_of(style->str);
    g_string_append_printf(out,
                           "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                           "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
                           "'none'; style-src 'sha256-%s'; img-src data:; base-uri 'none'; "
                           "form-action 'none'\">\n"
                           "<meta name=\"viewport\" content=\"width=device-width, "
                           "initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n",
                           hash);
    append_element(out, "title", title);
    g_string_append_printf(out, "<style>%s</style>\n</head>\n<body>\n<main>\n", style->str);
    append_element(out, "h1", title);
    lh_page_words(out, below);
    g_string_append(out, "<section class=\"answer\">\n");
}

void
lh_page_end(GString *out)
{
    g_string_append(out, "</section>\n</main>\n</body>\n</html>\n");
}

void
lh_page_section(GString *out, const char *title)
{
    g_string_append(out, "</section>\n<section>\n");
    append_element(out, "h2", title);
}

void
lh_page_words(GString *out, const char *lines)
{
    g_auto(GStrv) each = g_strsplit(lines, "\n", -1);

    for (guint i = 0; each[i] != NULL; i++) {
        if (each[i][0] != '\0')
            append_element(out, "p", each[i]);
    }
}

void
lh_page_code(GString *out, const char *text)
{
    append_element(out, "pre", text);
}

void
lh_page_picture(GString *out, const GString *svg, const char *words)
{
    g_autofree char *data = g_base64_encode((const guchar *)svg->str, svg->len);

    g_string_append(out, "<figure><img alt=\"");
    lh_escape_html(out, words);
    g_string_append_printf(out, "\" src=\"data:image/svg+xml;base64,%s\"></figure>\n", data);
}
