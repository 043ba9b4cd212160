/*
 * The commands: one file each, cmd_<name>.c defining `const LhCommand lh_command_<name>`, and one
 * word in src/cli/meson.build. Help and completion are made from this table.
 */
#pragma once

#include "plan/scenario.h"
#include "report/result_json.h"
#include "report/table.h"

/* What a command line said. */
typedef struct {
    const char *const *argv; /* the whole of it, for the stamp */
    LhScenario *scenario;    /* file and options; NULL for commands that take none */
    GPtrArray *arguments;    /* of char *: what is left beside options */
    int format;              /* LhFormat, or -1: not given */
    char *output;            /* NULL: standard output */
    char *figure;
    char *timeline;
    char *ranks; /* of verify: a list of ranges */
    bool provenance;
    /* Of run. */
    int backend; /* index of lh_transports */
    int kernels; /* LhKernelSet */
    int inputs;  /* LhInputKind */
    uint64_t repeat;
    LhTime deadline_ps; /* 0: not given */
    char *inject;
    /* Of calibrate and validate. */
    int statistic; /* LhStatistic */
    int dtype;     /* LhDtype */
    bool quick;
    uint64_t threads;
    char *tolerance;
} LhCli;

typedef struct {
    const char *name;
    const char *arguments;  /* what may stand beside options, for help */
    const char *summary;    /* one line */
    const char *details;    /* printed after the options in help: what it does, examples */
    bool scenario;          /* takes the scenario's options; the first argument is a scenario */
    const LhField *options; /* its own, of LhCli, ended by a zero entry */
    guint arguments_max;    /* arguments allowed, the scenario not counted */
    /* Returns the exit status; with @error set, the error's code is the status. */
    int (*run)(LhCli *cli, GError **error);
} LhCommand;

/* NULL-terminated, in the order of meson.build. */
extern const LhCommand *const lh_commands[];

/* NULL with @error (LH_ERROR_USAGE, with the nearest name) if there is no such command. */
const LhCommand *lh_command_find(const char *name, GError **error);

/* Rows of option tables that several commands share. */
#define LH_CLI_FORMAT                                                                              \
    {                                                                                              \
        .name = "format", .type = LH_FIELD_CHOICE, .offset = offsetof(LhCli, format),              \
        .choices = lh_format_names, .description = "Of the output; default table."                 \
    }
#define LH_CLI_OUTPUT                                                                              \
    {                                                                                              \
        .name = "output", .type = LH_FIELD_STRING, .offset = offsetof(LhCli, output),              \
        .description = "Write to this file, whole or not at all; - is standard output."            \
    }
#define LH_CLI_FIGURE(text)                                                                        \
    {                                                                                              \
        .name = "figure", .type = LH_FIELD_STRING, .offset = offsetof(LhCli, figure),              \
        .description = (text)                                                                      \
    }
#define LH_CLI_PROVENANCE                                                                          \
    {                                                                                              \
        .name = "provenance", .type = LH_FIELD_BOOL, .offset = offsetof(LhCli, provenance),        \
        .description = "Print where every constant comes from."                                    \
    }

/* The format asked for, or the table. */
LhFormat lh_cli_format(const LhCli *cli);

/* Writes a command's result where the command line wants it. */
bool lh_cli_write(const LhCli *cli, const GString *text, GError **error);

LhStamp lh_cli_stamp(const LhCli *cli);
