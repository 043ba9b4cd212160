/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/saved.h"

#include "base/error.h"
#include "base/escape.h"
#include "base/json/json_same.h"
#include "cli/options.h"

#include <string.h>

#define COMMAND_BYTES_MAX 300 /* longest command line in a message */

typedef struct {
    char *path;
} Input;

static const LhField input_fields[] = {
    { .name = "path",
      .type = LH_FIELD_STRING,
      .offset = offsetof(Input, path),
      .flags = LH_FIELD_REQUIRED },
    { .name = NULL },
};

typedef struct {
    GPtrArray *argv;
    GArray *inputs; /* of Input */
    bool interrupted;
} Head;

static const LhField head_fields[] = {
    { .name = "argv",
      .type = LH_FIELD_STRINGS,
      .offset = offsetof(Head, argv),
      .min = 1,
      .max = -1,
      .flags = LH_FIELD_REQUIRED },
    { .name = "inputs",
      .type = LH_FIELD_ARRAY,
      .offset = offsetof(Head, inputs),
      .fields = input_fields,
      .element_size = sizeof(Input),
      .flags = LH_FIELD_REQUIRED },
    { .name = "interrupted", .type = LH_FIELD_BOOL, .offset = offsetof(Head, interrupted) },
    { .name = NULL },
};

/* The command is the first word after "longhaul". */
static bool
find_command(LhSaved *saved, const char *const *writers, GError **error)
{
    const char *name =
        g_ptr_array_index(saved->argv, 0) == NULL ? NULL : g_ptr_array_index(saved->argv, 1);
    g_autofree char *all = g_strjoinv(", ", (char **)writers);
    g_autofree char *word = lh_escaped_line(name == NULL ? "without a command" : name);

    if (name != NULL && g_strv_contains(writers, name))
        saved->command = lh_command_find(name, NULL);
    return saved->command != NULL ||
           lh_json_error(saved->json, name == NULL ? "argv" : "argv[1]", error,
                         "this is a result of longhaul %s; allowed: results of %s", word, all);
}

LhSaved *
lh_saved_load(const char *path, const char *const *writers, GError **error)
{
    g_autoptr(LhSaved) saved = g_new0(LhSaved, 1);
    Head head = { .argv = NULL };

    saved->json = lh_json_load(path, error);
    if (saved->json == NULL || !lh_json_decode(saved->json, head_fields, &head, true, error))
        return NULL;
    if (head.interrupted) {
        lh_json_error(saved->json, "interrupted", error,
                      "the command was interrupted, so this result is partial and cannot be shown; "
                      "let the command finish (with --points it continues from what it had)");
        lh_json_clear(head_fields, &head);
        return NULL;
    }
    saved->argv = g_steal_pointer(&head.argv);
    lh_json_clear(head_fields, &head);
    g_ptr_array_add(saved->argv, NULL);
    return find_command(saved, writers, error) ? g_steal_pointer(&saved) : NULL;
}

void
lh_saved_free(LhSaved *saved)
{
    if (saved == NULL)
        return;
    lh_json_free(saved->json);
    g_clear_pointer(&saved->argv, g_ptr_array_unref);
    g_free(saved);
}

/* Resets the options for outputs and for how the result is computed. */
static void
forget_rest(const LhCommandLine *line)
{
    const unsigned rest = LH_FIELD_WRITTEN | LH_FIELD_UPDATED | LH_COMMAND_HOW;

    for (const LhField *f = line->command->options; f->name != NULL; f++) {
        if ((f->flags & rest) != 0)
            lh_options_forget(f, line->options);
    }
}

bool
lh_saved_line(const LhSaved *saved, LhCommandLine *line, GError **error)
{
    char *const *argv = (char *const *)saved->argv->pdata;
    g_autoptr(GError) cause = NULL;
    LhHelpExtent help = LH_HELP_NONE;

    *line = (LhCommandLine){ .command = saved->command,
                             .argv = (const char *const *)argv,
                             .saved = saved };
    if (lh_options_parse(saved->command, argv + 2, line, &help, &cause) && help == LH_HELP_NONE) {
        forget_rest(line);
        return true;
    }
    return lh_json_error(saved->json, "argv", error,
                         "the recorded command line has no result to show: %s",
                         help != LH_HELP_NONE ? "it is a call for help" : cause->message);
}

/* Whether a difference at @path matters: version, date and paths of inputs may differ. */
static bool
counts(const char *path)
{
    return !g_str_equal(path, "tool") && !g_str_equal(path, "date") &&
           !(g_str_has_prefix(path, "inputs[") && g_str_has_suffix(path, "].path"));
}

/* Returns the path of the input whose checksum is at @path of the document; NULL: not a checksum.
 * Caller frees. */
static char *
input_at(const LhSaved *saved, const char *path)
{
    Head head = { .argv = NULL };
    char *input = NULL;

    if (!lh_json_decode(saved->json, head_fields, &head, true, NULL))
        return NULL;
    for (guint i = 0; i < head.inputs->len && input == NULL; i++) {
        g_autofree char *checksum = g_strdup_printf("inputs[%u].sha256", i);

        if (g_str_equal(path, checksum))
            input = lh_escaped_line(g_array_index(head.inputs, Input, i).path);
    }
    lh_json_clear(head_fields, &head);
    return input;
}

/* Returns the recorded command line, shortened. Caller frees. */
static char *
command_text(const LhSaved *saved)
{
    g_autofree char *words = g_strjoinv(" ", (char **)saved->argv->pdata);
    g_autofree char *line = lh_escaped_line(words);

    return strlen(line) > COMMAND_BYTES_MAX ? g_strdup_printf("%.*s...", COMMAND_BYTES_MAX, line)
                                            : g_steal_pointer(&line);
}

bool
lh_saved_check(const LhSaved *saved, const GString *again, GError **error)
{
    g_autoptr(LhJson) json = lh_json_parse("again", again->str, again->len, error);
    g_auto(LhJsonDifference) d = { NULL };
    g_autofree char *command = NULL;
    g_autofree char *input = NULL;

    if (json == NULL)
        return false;
    if (lh_json_same(saved->json, json, counts, &d))
        return true;
    command = command_text(saved);
    input = input_at(saved, d.path);
    return lh_json_error(saved->json, d.path, error,
                         "%s%s: the saved result has %s, and the current inputs give %s, so it "
                         "cannot be shown; repeat it with %s",
                         input != NULL ? "SHA-256 of " : "", input != NULL ? input : d.path, d.a,
                         d.b, command);
}
