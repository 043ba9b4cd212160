/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields come from the table of scenarios, options from that of the command, so that a new one is
 * written, read and compared without being named here.
 *
 * A field of two documents is compared by what it came to, if both say so: a default that was given
 * and one that was not are the same question. If one does not, being older than the member, it is
 * compared by what was given, and what was not is the field's default.
 */
#include "report/data/query_stamp.h"

#include "scenario/setting.h"

/* --- writing ------------------------------------------------------------------------------------
 */

static bool
is_list(const LhField *field)
{
    return field->type == LH_FIELD_STRINGS || field->type == LH_FIELD_ARRAY;
}

/* @texts as lh_setting_texts() has them; nothing is null. */
static void
write_texts(LhJsonWriter *w, const LhField *field, const GPtrArray *texts)
{
    if (!is_list(field)) {
        if (field->type == LH_FIELD_BOOL)
            lh_jsonw_bool(w, field->name, texts->len > 0);
        else
            lh_jsonw_string(w, field->name, texts->len > 0 ? texts->pdata[0] : NULL);
        return;
    }
    lh_jsonw_array_begin(w, field->name);
    for (guint i = 0; i < texts->len; i++)
        lh_jsonw_string(w, NULL, g_ptr_array_index(texts, i));
    lh_jsonw_array_end(w);
}

static void
write_scenario(LhJsonWriter *w, const LhScenario *s)
{
    lh_jsonw_object_begin(w, "scenario");
    for (const LhField *field = lh_scenario_options(); field->name != NULL; field++) {
        g_autoptr(GPtrArray) texts = NULL;

        if (!lh_scenario_has(s, field->name))
            continue;
        texts = lh_setting_texts(field, s);
        if (texts->len > 0)
            write_texts(w, field, texts);
    }
    lh_jsonw_object_end(w);
}

/* Options are all zero where they are not given. */
static bool
is_given(const LhField *field, const void *options)
{
    const void *at = (const char *)options + field->offset;
    const bool counts = field->type == LH_FIELD_UNIT &&
                        (field->unit == LH_UNIT_COUNT || field->unit == LH_UNIT_BYTES);

    if (is_list(field) || field->type == LH_FIELD_UINTS || field->type == LH_FIELD_STRING)
        return *(void *const *)at != NULL;
    if (field->type == LH_FIELD_UINT || counts)
        return *(const uint64_t *)at != 0;
    if (field->type == LH_FIELD_UNIT && field->unit == LH_UNIT_TIME)
        return *(const LhTime *)at != 0;
    if (field->type == LH_FIELD_UNIT || field->type == LH_FIELD_DOUBLE)
        return *(const double *)at != 0;
    return true; /* flags and choices, of which the first is the default */
}

static void
write_asked_option(LhJsonWriter *w, const LhField *field, const void *options)
{
    g_autoptr(GPtrArray) texts = NULL;

    if (!is_given(field, options)) {
        lh_jsonw_string(w, field->name, field->absent);
        return;
    }
    texts = lh_setting_texts(field, options);
    write_texts(w, field, texts);
}

void
lh_query_stamp_json(LhJsonWriter *w, const LhStamp *stamp)
{
    if (stamp->scenario == NULL)
        return;
    lh_jsonw_object_begin(w, "asked");
    write_scenario(w, stamp->scenario);
    lh_jsonw_object_begin(w, "options");
    for (const LhField *f = stamp->options; f != NULL && f->name != NULL; f++) {
        if ((f->flags & stamp->not_asked) == 0)
            write_asked_option(w, f, stamp->values);
    }
    lh_jsonw_object_end(w);
    lh_jsonw_object_end(w);
}

static void
write_file(LhJsonWriter *w, const char *of, const char *path, const char *sha256)
{
    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "of", of);
    lh_jsonw_string(w, "path", path);
    lh_jsonw_string(w, "sha256", sha256);
    lh_jsonw_object_end(w);
}

void
lh_inputs_json(LhJsonWriter *w, const LhStamp *stamp, const GPtrArray *inputs)
{
    lh_jsonw_array_begin(w, "inputs");
    for (guint i = 0; inputs != NULL && i < inputs->len; i++) {
        const LhInput *input = g_ptr_array_index(inputs, i);

        write_file(w, input->of, input->path, input->sha256);
    }
    if (stamp->config != NULL)
        write_file(w, "configuration", stamp->config->entries->file,
                   stamp->config->entries->sha256);
    lh_jsonw_array_end(w);
}
