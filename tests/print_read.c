/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the parsed form of documents: print_read toml|csv. Each document on standard input is a
 * line with its length in bytes, then the document. The answer to each is a line of JSON: {"error":
 * ...}, or the settings as [path, kind, values...], or the rows with their cells, column names
 * first.
 */
#include "base/files/csv.h"
#include "base/json/json_writer.h"
#include "base/settings/settings_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
print_settings(const LhSettingsFile *file, LhJsonWriter *w)
{
    static const char *const kinds[] = {
        [LH_SETTINGS_WORD] = "word", [LH_SETTINGS_PLAIN] = "plain", [LH_SETTINGS_LIST] = "list"
    };

    for (guint i = 0; i < file->entries->len; i++) {
        const LhSettingsEntry *entry = g_ptr_array_index(file->entries, i);

        lh_jsonw_array_begin(w, NULL);
        lh_jsonw_string(w, NULL, entry->path);
        lh_jsonw_string(w, NULL, kinds[entry->kind]);
        for (guint v = 0; v < entry->values->len; v++)
            lh_jsonw_string(w, NULL, g_ptr_array_index(entry->values, v));
        lh_jsonw_array_end(w);
    }
}

static void
print_rows(const LhCsv *csv, LhJsonWriter *w)
{
    for (guint row = 0; row <= lh_csv_rows(csv); row++) {
        lh_jsonw_array_begin(w, NULL);
        for (guint column = 0; column < lh_csv_columns(csv); column++)
            lh_jsonw_string(w, NULL,
                            row == 0 ? lh_csv_column_name(csv, column)
                                     : lh_csv_cell(csv, row - 1, column));
        lh_jsonw_array_end(w);
    }
}

static void
print_document(bool toml, const char *text, gsize length)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhSettingsFile) file = toml ? lh_settings_toml("f", text, length, &error) : NULL;
    g_autoptr(LhCsv) csv = toml ? NULL : lh_csv_parse("f", text, length, &error);
    g_autoptr(GString) out = g_string_new(NULL);
    LhJsonWriter *w = lh_jsonw_new(out, true);

    g_assert((file == NULL && csv == NULL) == (error != NULL));
    lh_jsonw_object_begin(w, NULL);
    if (error != NULL) {
        lh_jsonw_string(w, "error", error->message);
    } else {
        lh_jsonw_array_begin(w, "read");
        if (toml)
            print_settings(file, w);
        else
            print_rows(csv, w);
        lh_jsonw_array_end(w);
    }
    lh_jsonw_object_end(w);
    lh_jsonw_free(w);
    printf("%s\n", g_strchomp(out->str));
}

int
main(int argc, char **argv)
{
    const bool toml = argc == 2 && strcmp(argv[1], "toml") == 0;
    char line[32];

    if (!toml && (argc != 2 || strcmp(argv[1], "csv") != 0))
        return 2;
    while (fgets(line, sizeof(line), stdin) != NULL) {
        const gsize length = strtoul(line, NULL, 10);
        g_autofree char *text =
            g_malloc(length); /* no NUL at the end, so that sanitizers detect reads beyond it */

        if (fread(text, 1, length, stdin) != length)
            return 3;
        print_document(toml, text, length);
    }
    return 0;
}
