/* SPDX-License-Identifier: Apache-2.0 */
#include "report/validation/input_texts.h"

#include "base/files/data_files.h"
#include "base/files/file_input.h"
#include "base/json/json.h"

const LhField lh_input_text_fields[] = {
    LH_FIELD_ROW(STRING, LhInputText, path, "path", ALWAYS, .description = "Path as given."),
    LH_FIELD_ROW(STRING, LhInputText, text, "text", ALWAYS, .description = NULL),
    { .name = NULL },
};

static void
text_free(gpointer data)
{
    LhInputText *it = data;

    g_free(it->path);
    g_free(it->text);
    g_free(it);
}

/* NULL if the file is no longer readable or has changed. Caller frees. */
static char *
text_of(const LhInput *input)
{
    g_autofree char *data = lh_data_dir();
    g_autofree char *there = g_build_filename(data, input->path, NULL);
    g_autofree char *text = NULL;
    g_autofree char *sha256 = NULL;
    gsize length;

    text = lh_input_read(input->path, LH_JSON_BYTES_MAX, &length, NULL);
    if (text == NULL)
        text = lh_input_read(there, LH_JSON_BYTES_MAX, &length, NULL);
    if (text == NULL)
        return NULL;
    sha256 = g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)text, length);
    if (g_strcmp0(sha256, input->sha256) != 0 || !g_utf8_validate(text, (gssize)length, NULL))
        return NULL;
    return g_steal_pointer(&text);
}

GPtrArray *
lh_input_texts(const LhSetup *setup)
{
    GPtrArray *texts = g_ptr_array_new_with_free_func(text_free);

    for (guint i = 0; i < setup->inputs->len; i++) {
        const LhInput *input = g_ptr_array_index(setup->inputs, i);
        char *text = text_of(input);
        LhInputText *it;

        if (text == NULL)
            continue;
        it = g_new(LhInputText, 1);
        *it = (LhInputText){ .path = g_strdup(input->path), .text = text };
        g_ptr_array_add(texts, it);
    }
    return texts;
}
