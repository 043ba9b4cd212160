/* SPDX-License-Identifier: Apache-2.0 */
#include "report/diff/question.h"

#include "scenario/scenario.h"
#include "scenario/scenario_fields.h"
#include "scenario/setting.h"

#include <string.h>

/* --- reading ------------------------------------------------------------------------------------
 */

static void
asked_free(gpointer data)
{
    LhQueryStamp *asked = data;

    g_free(asked->name);
    g_free(asked->is);
    g_free(asked->given);
    g_free(asked);
}

void
lh_question_free(LhQueryStampWhole *question)
{
    if (question == NULL)
        return;
    g_ptr_array_unref(question->all);
    g_free(question);
}

static LhQueryStamp *
find_asked(const LhQueryStampWhole *q, const char *name)
{
    for (guint i = 0; i < q->all->len; i++) {
        LhQueryStamp *asked = g_ptr_array_index(q->all, i);

        if (strcmp(asked->name, name) == 0)
            return asked;
    }
    return NULL;
}

/* Adds an entry; takes over @name. */
static LhQueryStamp *
new_asked(LhQueryStampWhole *q, char *name)
{
    LhQueryStamp *asked = g_new0(LhQueryStamp, 1);

    asked->name = name;
    g_ptr_array_add(q->all, asked);
    return asked;
}

void
lh_question_give(LhQueryStampWhole *question, const char *field, const char *given)
{
    LhQueryStamp *asked = find_asked(question, field);

    g_free(asked->given);
    asked->given = g_strdup(given);
}

void
lh_question_add(LhQueryStampWhole *question, char *name, char *is)
{
    LhQueryStamp *asked = find_asked(question, name);

    if (asked == NULL)
        asked = new_asked(question, name);
    else
        g_free(name);
    g_free(asked->is);
    asked->is = is;
    asked->is_known = true;
}

/* Texts at @path: the elements of an array, or the values of an object ("3:2"). NULL: nothing
 * there. Caller unrefs. */
static GPtrArray *texts_at(const LhJson *json, const char *path);

static char *
text_at(const LhJson *json, const char *path)
{
    const char kind = lh_json_kind(json, path);
    g_autoptr(GPtrArray) texts = NULL;
    const char *joint = kind == '{' ? ":" : ", ";

    if (kind == '\0' || kind == 'n')
        return NULL;
    if (kind != '{' && kind != '[' && kind != '"')
        return lh_json_text(json, path);
    texts = texts_at(json, path);
    if (texts->len == 0)
        return NULL;
    g_ptr_array_add(texts, NULL);
    return g_strjoinv(joint, (char **)texts->pdata);
}

static GPtrArray *
texts_at(const LhJson *json, const char *path)
{
    GPtrArray *texts = g_ptr_array_new_with_free_func(g_free);
    const char kind = lh_json_kind(json, path);

    if (kind == '"') {
        g_ptr_array_add(texts, lh_json_string_at(json, path));
    } else if (kind == '{') {
        g_autoptr(GPtrArray) keys = lh_json_keys(json, path);

        for (guint i = 0; i < keys->len; i++) {
            g_autofree char *at = g_strdup_printf("%s.%s", path, (char *)keys->pdata[i]);
            char *text = text_at(json, at);

            g_ptr_array_add(texts, text != NULL ? text : g_strdup("-"));
        }
    } else if (kind == '[') {
        for (guint i = 0;; i++) {
            g_autofree char *at = g_strdup_printf("%s[%u]", path, i);

            if (lh_json_kind(json, at) == '\0')
                break;
            g_ptr_array_add(texts, text_at(json, at));
        }
    } else if (kind != '\0' && kind != 'n') {
        g_ptr_array_add(texts, lh_json_text(json, path));
    }
    return texts;
}

/* --- given values -------------------------------------------------------------------------------
 */

/* Sets @field in @scratch to the value at @path. */
static bool
take_given(const LhJson *json, const char *path, const LhField *field, LhScenario *scratch,
           GError **error)
{
    g_autoptr(GPtrArray) texts = texts_at(json, path);
    const bool flag = lh_setting_is_flag(field);
    g_autoptr(GError) cause = NULL;

    if (flag && (texts->len != 1 || strcmp(texts->pdata[0], "true") != 0))
        return lh_json_error(json, path, error, "a flag that was given must be true here");
    for (guint i = 0; i < texts->len; i++) {
        if (!lh_scenario_set(scratch, field, flag ? NULL : texts->pdata[i], &cause))
            return lh_json_error(json, path, error, "%s", cause->message);
    }
    return true;
}

static bool
read_scenario(const LhJson *json, LhScenario *scratch, GError **error)
{
    g_autoptr(GPtrArray) keys = lh_json_keys(json, "asked.scenario");

    for (guint i = 0; i < keys->len; i++) {
        g_autofree char *path = g_strdup_printf("asked.scenario.%s", (char *)keys->pdata[i]);
        const LhField *field = lh_scenario_options();

        while (field->name != NULL && strcmp(field->name, keys->pdata[i]) != 0)
            field++;
        if (field->name == NULL)
            return lh_json_error(json, path, error,
                                 "unknown scenario field; compare results of a later version of "
                                 "longhaul with that version");
        if (!take_given(json, path, field, scratch, error))
            return false;
    }
    return true;
}

/* Name of an option on the command line of a document without "asked"; NULL: not an option. Caller
 * frees. */
static char *
option_name(const char *word)
{
    char *name;

    if (!g_str_has_prefix(word, "--") || word[2] == '\0')
        return NULL;
    name = g_strndup(word, strcspn(word, "="));
    return g_strdelimit(name, "_", '-');
}

/* Reads the scenario's values on the command line; words that are not valid values are skipped. */
static void
read_argv(const LhJson *json, LhScenario *scratch)
{
    g_autoptr(GPtrArray) words = texts_at(json, "argv");

    for (guint i = 0; i < words->len; i++) {
        const char *word = g_ptr_array_index(words, i);
        g_autofree char *name = option_name(word);
        const char *equals = strchr(word, '=');
        const LhField *field = name != NULL ? lh_setting_find(lh_scenario_options(), name) : NULL;

        if (field == NULL)
            continue;
        if (lh_setting_is_flag(field))
            lh_scenario_set(scratch, field, NULL, NULL);
        else if (equals != NULL)
            lh_scenario_set(scratch, field, equals + 1, NULL);
        else if (i + 1 < words->len)
            lh_scenario_set(scratch, field, g_ptr_array_index(words, ++i), NULL);
    }
}

/* Value of @field in @scratch, or its default; NULL: none. Caller frees. */
static char *
given_text(const LhField *field, const LhScenario *scratch)
{
    g_autoptr(GPtrArray) texts = NULL;

    if (!lh_scenario_has(scratch, field->name))
        return g_strdup(field->absent);
    if (lh_setting_is_flag(field))
        return g_strdup("true");
    texts = lh_setting_texts(field, scratch);
    g_ptr_array_add(texts, NULL);
    return g_strjoinv(", ", (char **)texts->pdata);
}

static bool
add_fields(LhQueryStampWhole *q, const LhJson *json, GError **error)
{
    g_autoptr(LhScenario) scratch = lh_scenario_new();

    if (!q->told)
        read_argv(json, scratch);
    else if (!read_scenario(json, scratch, error))
        return false;
    for (const LhField *field = lh_scenario_options(); field->name != NULL; field++) {
        LhQueryStamp *asked = new_asked(q, g_strdup(field->name));

        asked->given = given_text(field, scratch);
    }
    return true;
}

static bool
is_on_line(const GPtrArray *words, const char *name)
{
    for (guint i = 0; i < words->len; i++) {
        g_autofree char *option = option_name(g_ptr_array_index(words, i));

        if (g_strcmp0(option, name) == 0)
            return true;
    }
    return false;
}

static void
add_told_options(LhQueryStampWhole *q, const LhJson *json)
{
    g_autoptr(GPtrArray) keys = lh_json_keys(json, "asked.options");
    g_autoptr(GPtrArray) words = texts_at(json, "argv");

    for (guint i = 0; i < keys->len; i++) {
        g_autofree char *path = g_strdup_printf("asked.options.%s", (char *)keys->pdata[i]);
        char *name = g_strdup_printf("--%s", (char *)keys->pdata[i]);
        LhQueryStamp *asked = new_asked(q, g_strdelimit(name, "_", '-'));

        asked->given = text_at(json, path);
        asked->on_line = is_on_line(words, name);
        if (g_strcmp0(asked->given, "false") == 0)
            g_clear_pointer(&asked->given, g_free);
    }
}

/* Adds the options of the command line of a document without "asked", outputs included. */
static void
add_argv_options(LhQueryStampWhole *q, const LhJson *json)
{
    g_autoptr(GPtrArray) words = texts_at(json, "argv");

    for (guint i = 0; i < words->len; i++) {
        const char *word = g_ptr_array_index(words, i);
        const char *equals = strchr(word, '=');
        const char *next = i + 1 < words->len ? words->pdata[i + 1] : "-";
        char *name = option_name(word);
        LhQueryStamp *asked;

        if (name == NULL || lh_setting_find(lh_scenario_options(), name) != NULL ||
            find_asked(q, name) != NULL) {
            g_free(name);
            continue;
        }
        asked = new_asked(q, name);
        asked->given = g_strdup(equals != NULL ? equals + 1 : next[0] == '-' ? "true" : next);
    }
}

/* --- files --------------------------------------------------------------------------------------
 */

/* Kind of a file in documents written before member "of": derived from its folder. */
static const char *
of_path(const char *path)
{
    static const char *const folders[][2] = { { "topologies/", "cluster" },
                                              { "devices/", "device" },
                                              { "models/", "model" },
                                              { "frameworks/", "framework" } };

    for (guint i = 0; i < G_N_ELEMENTS(folders); i++) {
        if (g_str_has_prefix(path, folders[i][0]))
            return folders[i][1];
    }
    return path;
}

/* Several files of the same kind are those of several clusters. */
static void
add_digests(LhQueryStampWhole *q, const LhJson *json)
{
    for (guint i = 0;; i++) {
        g_autofree char *at = g_strdup_printf("inputs[%u]", i);
        g_autofree char *of_at = g_strdup_printf("%s.of", at);
        g_autofree char *path_at = g_strdup_printf("%s.path", at);
        g_autofree char *sha256_at = g_strdup_printf("%s.sha256", at);
        g_autofree char *of = text_at(json, of_at);
        g_autofree char *path = text_at(json, path_at);
        g_autofree char *sha256 = text_at(json, sha256_at);
        g_autofree char *name = NULL;
        LhQueryStamp *before;

        if (path == NULL || sha256 == NULL)
            break;
        name = g_strconcat(LH_DIGEST_OF, of != NULL ? of : of_path(path), NULL);
        before = find_asked(q, name);
        lh_question_add(q, g_strdup(name),
                        before == NULL ? g_strdup(sha256)
                                       : g_strdup_printf("%s, %s", before->is, sha256));
    }
}

/* --- queries ------------------------------------------------------------------------------------
 */

static void
add_worked_out(LhQueryStampWhole *q, const LhJson *json, const char *of_case,
               const char *const *members)
{
    g_autoptr(GPtrArray) keys = lh_json_keys(json, of_case);

    for (guint i = 0; i < keys->len; i++) {
        const char *key = g_ptr_array_index(keys, i);
        g_autofree char *path =
            of_case[0] == '\0' ? g_strdup(key) : g_strdup_printf("%s.%s", of_case, key);

        if (members == NULL || g_strv_contains(members, key))
            lh_question_add(q, g_strdup(key), text_at(json, path));
    }
}

LhQueryStampWhole *
lh_question_read(const LhJson *json, const char *of_case, const char *const *members,
                 GError **error)
{
    g_autoptr(LhQueryStampWhole) q = g_new0(LhQueryStampWhole, 1);

    q->all = g_ptr_array_new_with_free_func(asked_free);
    q->told = lh_json_has(json, "asked");
    if (!add_fields(q, json, error))
        return NULL;
    add_worked_out(q, json, of_case, members);
    if (q->told)
        add_told_options(q, json);
    else
        add_argv_options(q, json);
    add_digests(q, json);
    return g_steal_pointer(&q);
}

/* --- comparison of queries ----------------------------------------------------------------------
 */

static bool
is_file_name(const char *name)
{
    const LhField *field = lh_scenario_options();

    while (field->name != NULL && strcmp(field->name, name) != 0)
        field++;
    return g_strcmp0(field->names, "files") == 0;
}

/* Files are compared by content, whatever their path. */
static bool
is_known_by_digest(const LhQueryStampWhole *a, const LhQueryStampWhole *b, const char *name)
{
    g_autofree char *digest = g_strconcat(LH_DIGEST_OF, name, NULL);

    return is_file_name(name) && find_asked(a, digest) != NULL && find_asked(b, digest) != NULL;
}

/* Compares an option if both documents list all options of their command, or one does and the other
 * has its command line: an option missing on that line has its default. Two documents with only a
 * command line are not compared. */
static bool
option_differs(const LhQueryStampWhole *a, const LhQueryStampWhole *b, const LhQueryStamp *x,
               const LhQueryStamp *y)
{
    const LhQueryStamp *told = a->told ? x : y, *line = a->told ? y : x;

    if ((!a->told && !b->told) || told == NULL || (a->told && b->told && line == NULL))
        return false;
    if (line == NULL)
        return told->on_line;
    return g_strcmp0(told->given, line->given) != 0;
}

static bool
find_difference(const LhQueryStampWhole *a, const LhQueryStampWhole *b, const char *name,
                LhQueryStampOtherwise *d)
{
    const LhQueryStamp *x = find_asked(a, name), *y = find_asked(b, name);

    *d = (LhQueryStampOtherwise){ .name = name };
    if (g_str_has_prefix(name, "--")) {
        d->a = x != NULL ? x->given : NULL;
        d->b = y != NULL ? y->given : NULL;
        return option_differs(a, b, x, y);
    }
    if (x == NULL || y == NULL || is_known_by_digest(a, b, name))
        return false;
    d->a = x->is_known && y->is_known ? x->is : x->given;
    d->b = x->is_known && y->is_known ? y->is : y->given;
    return g_strcmp0(d->a, d->b) != 0;
}

static bool
has_difference(const GArray *all, const char *name)
{
    for (guint i = 0; i < all->len; i++) {
        if (strcmp(g_array_index(all, LhQueryStampOtherwise, i).name, name) == 0)
            return true;
    }
    return false;
}

/* Adds a file that differs, unless a field already shows it. A file that only one document has
 * counts if both have "asked". A scenario file counts only if both have one and no field differs,
 * since its fields are compared. */
static void
add_differing_file(GArray *all, const LhQueryStampWhole *a, const LhQueryStampWhole *b,
                   const char *name)
{
    const LhQueryStamp *x = find_asked(a, name), *y = find_asked(b, name);
    const char *of = name + strlen(LH_DIGEST_OF);
    const LhQueryStampOtherwise d = { name, x != NULL ? x->is : NULL, y != NULL ? y->is : NULL };
    const bool scenario = strcmp(of, "scenario") == 0;

    if (has_difference(all, name) || has_difference(all, of) || g_strcmp0(d.a, d.b) == 0 ||
        (scenario && (all->len > 0 || x == NULL || y == NULL)) ||
        ((x == NULL || y == NULL) && (!a->told || !b->told)))
        return;
    g_array_append_val(all, d);
}

static void
add_differences(GArray *all, const LhQueryStampWhole *of, const LhQueryStampWhole *a,
                const LhQueryStampWhole *b, bool files)
{
    for (guint i = 0; i < of->all->len; i++) {
        const char *name = ((const LhQueryStamp *)g_ptr_array_index(of->all, i))->name;
        LhQueryStampOtherwise d;

        if (g_str_has_prefix(name, LH_DIGEST_OF) != files)
            continue;
        if (files)
            add_differing_file(all, a, b, name);
        else if (!has_difference(all, name) && find_difference(a, b, name, &d))
            g_array_append_val(all, d);
    }
}

GArray *
lh_question_compare(const LhQueryStampWhole *a, const LhQueryStampWhole *b)
{
    GArray *all = g_array_new(FALSE, FALSE, sizeof(LhQueryStampOtherwise));

    add_differences(all, a, a, b, false);
    add_differences(all, b, a, b, false);
    add_differences(all, a, a, b, true);
    add_differences(all, b, a, b, true);
    return all;
}
