/* See the header. */
#include "plan/agree.h"

#include "base/error.h"
#include "config.h"
#include "program/digest.h"

#include <string.h>

/* What must be the same, as lines of a name and a value; each process tells its own. */
static void
add_line(GString *card, const char *name, const char *value)
{
    g_autofree char *line = g_strescape(value != NULL ? value : "", NULL);

    g_string_append_printf(card, "%s %s\n", name, line);
}

static void
add_number(GString *card, const char *name, uint64_t value)
{
    g_string_append_printf(card, "%s %" G_GUINT64_FORMAT "\n", name, value);
}

/* What the scenario says, with the default said. */
static const char *
collectives_of(const LhSetup *setup)
{
    const int asked = setup->scenario->collectives;

    return lh_collective_model_names[asked < 0 || asked == LH_COLLECTIVES_AUTO
                                         ? LH_COLLECTIVES_DIRECT
                                         : asked];
}

static char *
make_card(const LhProgram *program, const LhSetup *setup, const LhExecuteParams *params)
{
    GString *card = g_string_new(NULL);
    g_autofree char *digest = lh_program_digest(program);

    add_line(card, "version", LH_VERSION);
    add_line(card, "backend", params->backend->name);
    add_line(card, "kernels", params->backend->device->kernel_sets[params->kernel_set]);
    add_line(card, "collectives", collectives_of(setup));
    add_line(card, "inputs", lh_input_names[params->inputs]);
    add_number(card, "seed", setup->scenario->seed);
    add_number(card, "repeat", MAX(params->repeat, 1));
    add_number(card, "steps", MAX(params->steps, 1));
    add_number(card, "tokens", params->new_tokens);
    add_number(card, "check-tokens", params->check_tokens);
    add_number(card, "timeline", params->timeline != NULL);
    add_line(card, "inject", params->inject);
    add_line(card, "program", digest);
    return g_string_free(card, FALSE);
}

/* The value of a line "name value"; NULL if it is none. */
static const char *
line_value(const char *line)
{
    const char *space = line == NULL ? NULL : strchr(line, ' ');

    return space == NULL ? NULL : space + 1;
}

/* The difference between two cards. Returns false. */
static bool
name_difference(uint32_t rank, const char *theirs, const char *ours, GError **error)
{
    g_auto(GStrv) a = g_strsplit(theirs, "\n", -1);
    g_auto(GStrv) b = g_strsplit(ours, "\n", -1);
    guint i = 0;
    const char *at;

    while (a[i] != NULL && b[i] != NULL && strcmp(a[i], b[i]) == 0)
        i++;
    at = line_value(b[i]);
    if (at == NULL || line_value(a[i]) == NULL || g_str_has_prefix(b[i], "program "))
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                    "rank %u has another program than rank 0: start all processes with the same "
                    "options, files and version",
                    rank);
    else
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                    "rank %u has another %.*s (\"%s\") than rank 0 (\"%s\"): start all processes "
                    "with the same options, files and version",
                    rank, (int)(at - b[i] - 1), b[i], line_value(a[i]), at);
    return false;
}

bool
lh_execute_agree(const LhProgram *program, const LhSetup *setup, const LhExecuteParams *params,
                 const LhOpenControl *control, GError **error)
{
    g_autoptr(GByteArray) mine = g_byte_array_new();
    g_autoptr(GByteArray) all = g_byte_array_new();
    g_autofree char *card = NULL;
    const char *at;

    if (control->place.count == lh_program_ranks(program))
        return true;
    card = make_card(program, setup, params);
    g_byte_array_append(mine, (const guint8 *)card, (guint)strlen(card) + 1);
    if (!control->table->share(control->state, mine, all, error))
        return false;
    /* Every process sees all cards, and so the same difference. */
    if (all->len == 0 || all->data[all->len - 1] != '\0') {
        g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME,
                            "what other processes say of their programs cannot be read: their "
                            "version is another");
        return false;
    }
    at = (const char *)all->data;
    for (uint32_t rank = 0; at < (const char *)all->data + all->len; rank++) {
        if (strcmp(at, (const char *)all->data) != 0)
            return name_difference(rank * control->place.count, at, (const char *)all->data, error);
        at += strlen(at) + 1;
    }
    return true;
}
