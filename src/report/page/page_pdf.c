/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages as PDF, by an installed program: a browser, which reads and writes files in a temporary
 * folder of its own, or WeasyPrint, which uses pipes.
 */
#include "report/page/page_pdf.h"
#include "base/error.h"
#include "base/escape.h"
#include "base/files/output.h"
#include "base/files/subprocess.h"

#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEADLINE_S 300
#define FILES_OPEN 16 /* limit while a folder is removed */
#define PDF_BEGIN "%PDF-"

/* A program that makes PDF, in order of preference. */
typedef struct {
    const char *name;
    bool browser;
} Converter;

static const Converter converters[] = { { "chromium", true },
                                        { "chromium-browser", true },
                                        { "google-chrome", true },
                                        { "weasyprint", false } };

static const Converter *
find_converter(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(converters); i++) {
        g_autofree char *path = g_find_program_in_path(converters[i].name);

        if (path != NULL)
            return &converters[i];
    }
    return NULL;
}

static int
remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

/* A folder to remove with its contents; NULL: none. */
typedef struct {
    char *path;
} Folder;

static void
folder_clear(Folder *folder)
{
    if (folder->path != NULL)
        nftw(folder->path, remove_one, FILES_OPEN, FTW_DEPTH | FTW_PHYS);
    g_free(folder->path);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Folder, folder_clear)

/* Runs a browser in @folder, which has page.html. Its sandbox does not work for root and is not
 * needed: it shows our own page, without scripts. */
static bool
run_browser(const char *name, const char *folder, const char *page, GError **error)
{
    g_autofree char *profile = g_strconcat("--user-data-dir=", folder, "/profile", NULL);
    g_autofree char *to = g_strconcat("--print-to-pdf=", folder, "/page.pdf", NULL);
    g_autofree char *from = g_filename_to_uri(page, NULL, NULL);
    const char *const argv[] = { name,
                                 "--headless",
                                 "--disable-gpu",
                                 profile,
                                 to,
                                 "--no-pdf-header-footer",
                                 from,
                                 geteuid() == 0 ? "--no-sandbox" : NULL,
                                 NULL };
    const LhSubprocess child = { .argv = argv, .input = "", .deadline_s = DEADLINE_S };
    g_autoptr(GString) said = g_string_new(NULL);

    return lh_subprocess_run(&child, said, error);
}

static bool
print_by_browser(const char *name, const GString *html, GString *pdf, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_auto(Folder) folder = { .path = g_dir_make_tmp("longhaul-XXXXXX", &cause) };
    g_autofree char *page = NULL;
    g_autofree char *made = NULL;
    g_autofree char *text = NULL;
    gsize length = 0;

    if (folder.path == NULL) {
        g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME, cause->message);
        return false;
    }
    page = g_build_filename(folder.path, "page.html", NULL);
    made = g_build_filename(folder.path, "page.pdf", NULL);
    if (!lh_output_file(page, html->str, html->len, error) ||
        !run_browser(name, folder.path, page, error))
        return false;
    if (g_file_get_contents(made, &text, &length, NULL)) /* nocheck:read: our own */
        g_string_append_len(pdf, text, (gssize)length);
    return true;
}

static bool
print_by_weasyprint(const char *name, const GString *html, GString *pdf, GError **error)
{
    const char *const argv[] = { name, "-", "-", NULL };
    const LhSubprocess child = {
        .argv = argv, .input = html->str, .input_length = html->len, .deadline_s = DEADLINE_S
    };

    return lh_subprocess_run(&child, pdf, error);
}

bool
lh_page_write(const char *path, const GString *html, GError **error)
{
    const Converter *converter;
    g_autoptr(GString) pdf = g_string_new(NULL);

    if (!lh_page_is_pdf(path))
        return lh_output_file(path, html->str, html->len, error);
    if (!lh_page_check_converter(path, error))
        return false;
    converter = find_converter();
    if (converter->browser ? !print_by_browser(converter->name, html, pdf, error)
                           : !print_by_weasyprint(converter->name, html, pdf, error)) {
        g_prefix_error(error, "cannot print %s: ", path);
        return false;
    }
    if (!g_str_has_prefix(pdf->str, PDF_BEGIN)) {
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "%s did not write a PDF of the page",
                    converter->name);
        return false;
    }
    return lh_output_file(path, pdf->str, pdf->len, error);
}

bool
lh_page_is_pdf(const char *path)
{
    return g_str_has_suffix(path, ".pdf") && !lh_output_is_stream(path);
}

bool
lh_page_check_converter(const char *path, GError **error)
{
    g_autofree char *shown = NULL;

    if (!lh_page_is_pdf(path) || find_converter() != NULL)
        return true;
    shown = lh_escaped_line(path);
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                "cannot print %s: neither chromium nor weasyprint is installed (Debian: apt "
                "install chromium); a .html file needs neither, and any browser can print it",
                shown);
    return false;
}
