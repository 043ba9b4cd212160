/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads documents with the program's JSON reader and prints the results, for like_python.py. Each
 * line of standard input is a document in hexadecimal; each line of output is "no MESSAGE", or
 * "yes" and the values in order:
 *
 *     KIND@FIRST-END   KIND is one of {[s0tfnIN; s is followed by :HEX
 *     k@FIRST:HEX      the key of the value that follows
 *     )                the end of a container
 *
 * FIRST and END are byte offsets in the text. With the argument "python", NaN and Infinity are
 * values.
 */
#include "base/json/json_private.h"

#include <stdio.h>
#include <string.h>

static void
print_hex(const char *text)
{
    putchar(':');
    for (; *text != '\0'; text++)
        printf("%02x", (unsigned)(unsigned char)*text);
}

static char
kind_of(const char *text)
{
    if (*text == '-')
        text++;
    return g_ascii_isdigit(*text) ? '0' : *text == '"' ? 's' : *text;
}

static void
print_value(const LhJson *json, const cJSON *value)
{
    const gsize at = lh_json_place(value);

    if (value->string != NULL) {
        printf(" k@%zu", lh_json_key_place(json->text, value));
        print_hex(value->string);
    }
    printf(" %c@%zu-%zu", kind_of(json->text + at), at, lh_json_end(json->text, at));
    if (cJSON_IsString(value))
        print_hex(value->valuestring);
    for (const cJSON *child = value->child; child != NULL; child = child->next)
        print_value(json, child);
    if (cJSON_IsObject(value) || cJSON_IsArray(value))
        printf(" )");
}

static void
read_one(const char *hex, bool python)
{
    const gsize length = strlen(hex) / 2;
    g_autofree char *text = g_malloc(length + 1);
    g_autoptr(GError) error = NULL;
    g_autoptr(LhJson) json = NULL;

    for (gsize i = 0; i < length; i++)
        text[i] =
            (char)(g_ascii_xdigit_value(hex[2 * i]) * 16 + g_ascii_xdigit_value(hex[2 * i + 1]));
    json = python ? lh_json_parse_python("t", text, length, &error)
                  : lh_json_parse("t", text, length, &error);
    if (json == NULL) {
        printf("no %s\n", error->message);
        return;
    }
    printf("yes");
    print_value(json, lh_json_root(json));
    putchar('\n');
}

int
main(int argc, char **argv)
{
    const bool python = argc > 1 && strcmp(argv[1], "python") == 0;
    size_t room = 0;
    char *line = NULL;
    ssize_t length;

    while ((length = getline(&line, &room, stdin)) > 0) {
        line[strcspn(line, "\n")] = '\0';
        read_one(line, python);
    }
    free(line);
    return 0;
}
