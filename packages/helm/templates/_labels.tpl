{{- define "mockllm.labels" -}}
app.kubernetes.io/name: mockllm
app.kubernetes.io/component: server
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "mockllm.scenarios" -}}
{{ .Values.scenariosConfigMap | default (printf "%s-scenarios" .Release.Name) }}
{{- end }}
